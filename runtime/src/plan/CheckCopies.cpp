//===- CheckCopies.cpp - Copies of parameters, and who writes them --------===//
//
// A copy that is not written when its parameter is would be a wrong number and
// no error.
//
//===----------------------------------------------------------------------===//

#include "plan/Accesses.h"
#include "plan/ReadPlan.h"

#include "shardc-rt/HostArray.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <iterator>
#include <map>

using namespace shardc::rt;

template <typename... Args>
static absl::Status badCopy(const Args &...args) {
  return absl::DataLossError(absl::StrCat(args...));
}

static ByteRange rangeOf(const TensorSpec &tensor) {
  return {tensor.offset, tensor.offset + tensor.bytes};
}

static absl::Status checkCopy(const PlanSpec &plan, const TensorSpec &copy) {
  std::string what = absl::StrCat("copy \"", copy.name, "\"");
  const TensorSpec *parameter = plan.findTensor(copy.parameter);
  if (!parameter || parameter->role != Role::Parameter)
    return badCopy(what, " is of \"", copy.parameter,
                   "\", which is no parameter of the plan");
  if (copy.shape != parameter->shape ||
      copy.sharding.dims != parameter->sharding.dims ||
      copy.sharding.shardSizes != parameter->sharding.shardSizes)
    return badCopy(what, " is ", describe(copy.dtype, copy.shape),
                   " and its parameter ",
                   describe(parameter->dtype, parameter->shape),
                   "; expected the same shape and sharding");
  if (!isFloat(copy.dtype) || !isFloat(parameter->dtype) ||
      byteSize(copy.dtype) >= byteSize(parameter->dtype))
    return badCopy(what, " is ", toString(copy.dtype), " and its parameter ",
                   toString(parameter->dtype),
                   "; expected a narrower floating-point type");
  return absl::OkStatus();
}

namespace {

/// The writes of a program.
class Written {
public:
  Written(const PlanSpec &plan, const ProgramSpec &program) {
    for (const Command &command : program.commands)
      for (const Access &access :
           accessesOf(plan, program, command, /*runs=*/1))
        if (access.isWrite && access.bytes.begin < access.bytes.end) {
          uint64_t &end = ends[access.bytes.begin];
          end = std::max(end, access.bytes.end);
        }
    uint64_t end = 0;
    for (auto [begin, own] : ends)
      reach[begin] = end = std::max(end, own);
  }

  /// Some of the tensor.
  bool touches(const TensorSpec &tensor) const {
    ByteRange range = rangeOf(tensor);
    auto behind = reach.lower_bound(range.end);
    return range.begin < range.end && behind != reach.begin() &&
           std::prev(behind)->second > range.begin;
  }
  /// All of the tensor, at once.
  bool covers(const TensorSpec &tensor) const {
    ByteRange range = rangeOf(tensor);
    auto found = ends.find(range.begin);
    return range.begin == range.end ||
           (found != ends.end() && found->second >= range.end);
  }

private:
  /// By where writes begin: where the longest one ends, and where the farthest
  /// ends of all that begin there or before.
  std::map<uint64_t, uint64_t> ends, reach;
};

} // namespace

/// The runtime runs it on its own, between two runs of others.
static absl::Status checkRounding(const PlanSpec &plan,
                                  const ProgramSpec &program,
                                  const Written &written) {
  if (!program.results.empty())
    return badCopy("program \"", program.name, "\" has results");
  for (size_t i = 0; i < program.commands.size(); ++i) {
    const Command &command = program.commands[i];
    if (!std::holds_alternative<LaunchCommand>(command.operation))
      return badCopy("program \"", program.name, "\", command ", i, ": ",
                     nameOf(command), " where launches alone are expected");
  }
  for (const TensorSpec &tensor : plan.tensors)
    if (tensor.role != Role::Copy && written.touches(tensor))
      return badCopy("program \"", program.name, "\" writes ",
                     toString(tensor.role), " \"", tensor.name,
                     "\"; expected copies alone");
  return absl::OkStatus();
}

absl::Status shardc::rt::checkCopies(const PlanSpec &plan) {
  const ProgramSpec *rounding = plan.findProgram(roundingProgram);
  bool hasCopies = false;
  std::map<const ProgramSpec *, Written> written;
  auto writtenBy = [&](const ProgramSpec &program) -> const Written & {
    return written.try_emplace(&program, plan, program).first->second;
  };
  for (const TensorSpec &copy : plan.tensors) {
    if (copy.role != Role::Copy)
      continue;
    hasCopies = true;
    if (absl::Status s = checkCopy(plan, copy); !s.ok())
      return s;
    if (!rounding)
      return badCopy("copy \"", copy.name, "\" has no program \"",
                     roundingProgram, "\" to make it");
    const TensorSpec &parameter = *plan.findTensor(copy.parameter);
    for (const ProgramSpec &program : plan.programs)
      if ((&program == rounding || writtenBy(program).touches(parameter)) &&
          !writtenBy(program).covers(copy))
        return badCopy("program \"", program.name, "\" does not write copy \"",
                       copy.name, "\"",
                       &program == rounding
                           ? ""
                           : ", but its parameter \"" + parameter.name + "\"");
  }
  if (!rounding)
    return absl::OkStatus();
  // Another pipeline rank may have copies.
  bool isIdle = plan.rankAxis >= 0 && rounding->commands.empty();
  if (!hasCopies && !isIdle)
    return badCopy("program \"", roundingProgram,
                   "\" in a plan without copies");
  return checkRounding(plan, *rounding, writtenBy(*rounding));
}
