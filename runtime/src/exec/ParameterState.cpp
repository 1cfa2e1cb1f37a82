//===- ParameterState.cpp - Whether parameters hold values ----------------===//

#include "exec/ParameterState.h"

#include "exec/AliasSets.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

static bool isPersistent(const TensorSpec &tensor) {
  return tensor.role == Role::Parameter || tensor.role == Role::State;
}

/// Whether a program writes bytes of a parameter or a state.
static bool writesPersistent(const PlanSpec &plan, const ProgramSpec &program) {
  for (const BufferUse &use : usesOf(program))
    for (const TensorSpec &tensor : plan.tensors)
      if (use.numWrites > 0 && isPersistent(tensor) &&
          overlap(use.bytes, {tensor.offset, tensor.offset + tensor.bytes}))
        return true;
  return false;
}

ParameterState::ParameterState(const PlanSpec &plan)
    : plan(plan), hasValue(plan.tensors.size()) {
  for (size_t i = 0; i < plan.ranks()[0].programs.size(); ++i) {
    if (plan.ranks()[0].programs[i].name == roundingProgram)
      rounding = i;
    bool writes = false;
    for (const PlanSpec &rank : plan.ranks())
      writes |= writesPersistent(rank, rank.programs[i]);
    writesState.push_back(writes);
  }
}

void ParameterState::noteWrite(size_t tensor) {
  hasValue[tensor] = true;
  areShadowsStale |= plan.tensors[tensor].role == Role::Parameter;
}

void ParameterState::noteLoss(size_t tensor) {
  hasValue[tensor] = false;
  failure = "it was not set to its end";
}

void ParameterState::noteFailure(size_t program, absl::string_view why) {
  // The program that rounds may have been part of the run.
  areShadowsStale = true;
  if (!writesState[program])
    return;
  failure =
      absl::StrCat("\"", plan.ranks()[0].programs[program].name, "\" ", why);
  for (size_t i = 0; i < hasValue.size(); ++i)
    if (isPersistent(plan.tensors[i]))
      hasValue[i] = false;
}

absl::Status ParameterState::check(size_t tensor) const {
  const TensorSpec &spec = plan.tensors[tensor];
  if (hasValue[tensor] || !isPersistent(spec))
    return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      toString(spec.role), " \"", spec.name, "\" has no value",
      failure.empty() ? "" : absl::StrCat(", since ", failure),
      ": initialize the parameters, or set all parameters and states"));
}

absl::Status ParameterState::checkAll() const {
  for (size_t i = 0; i < hasValue.size(); ++i)
    if (absl::Status status = check(i); !status.ok())
      return status;
  return absl::OkStatus();
}

std::optional<size_t> ParameterState::takeRounding() {
  if (!areShadowsStale)
    return std::nullopt;
  areShadowsStale = false;
  return rounding;
}
