//===- guard-inputs.cpp - Runs that read arrays of the caller -------------===//
//
//   guard-inputs PLAN...
//
// Inputs may be read where the caller has them. Each program of a plan runs
// with arrays that end where a page begins that nobody may access, with arrays
// that begin behind such a page, with arrays at odd addresses, and with others
// again: results, parameters and states must have the same bits. Code that
// reads beyond an array ends the process. Prints how many programs ran.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Executor.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

using namespace shardc::rt;

namespace {

enum class Place { BeforeGuard, BehindGuard, AtOddAddress, OnHeap };

/// An array between two pages that nobody may access.
class GuardedArray {
public:
  GuardedArray(const HostArray &values, Place where) {
    const size_t page = sysconf(_SC_PAGESIZE), bytes = values.data.size(),
                 room = (bytes + 64 + page - 1) / page * page;
    size = room + 2 * page;
    memory = static_cast<char *>(
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED ||
        mprotect(memory + page, room, PROT_READ | PROT_WRITE) != 0) {
      std::perror("guard-inputs");
      std::exit(1);
    }
    array = memory + page;
    if (where == Place::BeforeGuard)
      array += room - bytes;
    else if (where == Place::AtOddAddress)
      array += 1;
    else if (where == Place::OnHeap)
      array += 64;
    std::memcpy(array, values.data.data(), bytes);
  }
  GuardedArray(GuardedArray &&) = delete;
  ~GuardedArray() { munmap(memory, size); }

  const char *data() const { return array; }

private:
  char *memory, *array;
  size_t size;
};

} // namespace

/// Numbers that differ from element to element, and from run to run.
static HostArray makeValues(const TensorInfo &tensor, int run) {
  HostArray array(tensor.dtype, tensor.shape);
  if (tensor.dtype == DType::F32)
    for (size_t i = 0; i < array.values<float>().size(); ++i)
      array.values<float>()[i] = float((i + run) * 7 % 13) / 8 - 0.75f;
  if (tensor.dtype == DType::I32 && tensor.labelClasses > 0)
    for (size_t i = 0; i < array.values<int32_t>().size(); ++i)
      array.values<int32_t>()[i] = (i + run) % tensor.labelClasses;
  return array;
}

/// The bytes of all results, parameters and states after two runs of a program.
static absl::StatusOr<std::string> bitsOf(Context &context,
                                          std::shared_ptr<const Plan> plan,
                                          const ProgramInfo &program,
                                          Place where) {
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::create(context, plan);
  if (!executor.ok())
    return executor.status();
  if (absl::Status status = (*executor)->initializeParameters(); !status.ok())
    return status;
  std::string bits;
  auto add = [&](const HostArray &array) {
    bits.append(reinterpret_cast<const char *>(array.data.data()),
                array.data.size());
  };
  for (int run = 0; run < 2; ++run) {
    std::map<std::string, GuardedArray> arrays;
    NamedArrays inputs;
    for (const std::string &name : program.inputs) {
      const TensorInfo &tensor = *plan->findTensor(name);
      const GuardedArray &array =
          arrays.try_emplace(name, makeValues(tensor, run), where)
              .first->second;
      inputs[name] = {tensor.dtype, tensor.shape, array.data()};
    }
    absl::StatusOr<RunResult> result = (*executor)->run(program.name, inputs);
    if (!result.ok())
      return result.status();
    for (const ResultInfo &info : program.results)
      add(*result->find(info.name));
  }
  for (const TensorInfo &tensor : plan->tensors())
    if (tensor.role == Role::Parameter || tensor.role == Role::State) {
      absl::StatusOr<HostArray> array = (*executor)->getTensor(tensor.name);
      if (!array.ok())
        return array.status();
      add(*array);
    }
  return bits;
}

static absl::Status check(Context &context, const char *path, int &programs) {
  absl::StatusOr<std::shared_ptr<const Plan>> plan = Plan::loadFile(path);
  if (!plan.ok())
    return plan.status();
  for (const ProgramInfo &program : (*plan)->programs()) {
    absl::StatusOr<std::string> expected;
    for (Place where : {Place::OnHeap, Place::BeforeGuard, Place::BehindGuard,
                        Place::AtOddAddress}) {
      absl::StatusOr<std::string> bits = bitsOf(context, *plan, program, where);
      if (!bits.ok())
        return bits.status();
      if (where == Place::OnHeap)
        expected = bits;
      if (*bits != *expected)
        return absl::InternalError(program.name + " differs");
    }
    ++programs;
  }
  return absl::OkStatus();
}

int main(int argc, char **argv) {
  absl::StatusOr<std::unique_ptr<Context>> context = Context::create({2});
  absl::Status status = context.status();
  int programs = 0;
  for (int i = 1; i < argc && status.ok(); ++i)
    if (status = check(**context, argv[i], programs); !status.ok())
      std::fprintf(stderr, "guard-inputs: %s: %s\n", argv[i],
                   std::string(status.message()).c_str());
  std::printf("%d programs\n", programs);
  return status.ok() ? 0 : 1;
}
