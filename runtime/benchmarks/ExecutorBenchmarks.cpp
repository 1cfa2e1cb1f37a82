//===- ExecutorBenchmarks.cpp - Commands through the executor -------------===//

#include "BenchmarkPlan.h"
#include "MicroBenchmarks.h"
#include "Rendezvous.h"

#include "shardc-rt/Executor.h"

using namespace shardc::rt;
using namespace shardc::rt::bench;

/// How often an all-reduce of `bytes` runs in one step, so that the step's
/// other costs are negligible.
static int64_t allReducesPerStep(int64_t bytes) {
  return std::clamp<int64_t>((int64_t(1) << 22) / bytes, 1, 1000);
}

/// Runs the train step of `plan` in every iteration.
static absl::Status runSteps(benchmark::State &state, const PlanOrError &plan,
                             ExecutorOptions options = {}) {
  if (!plan.ok())
    return plan.status();
  absl::StatusOr<std::unique_ptr<Context>> context = Context::create();
  if (!context.ok())
    return context.status();
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::create(**context, *plan, options);
  if (!executor.ok())
    return executor.status();
  absl::Status status = (*executor)->initializeParameters();
  status.Update((*executor)->step({}).status());
  for (auto _ : state)
    status.Update((*executor)->step({}).status());
  return status;
}

/// Reports an error as the benchmark's.
static void check(benchmark::State &state, const absl::Status &status) {
  if (!status.ok())
    state.SkipWithError(std::string(status.message()).c_str());
}

/// With `share` the devices share one copy of the result, as they do unless
/// told otherwise.
static void runAllReduces(benchmark::State &state, bool share) {
  int64_t bytes = state.range(0), count = allReducesPerStep(bytes);
  ExecutorOptions options;
  options.shareReplicas = share;
  check(state,
        runSteps(state,
                 makeAllReducePlan(numDevices, count, bytes / sizeof(float)),
                 options));
  setSeconds(state, count);
}

static void runRendezvous(benchmark::State &state) {
  int64_t bytes = state.range(0), count = allReducesPerStep(bytes);
  Rendezvous rendezvous(numDevices, bytes / sizeof(float));
  rendezvous.run(count);
  for (auto _ : state)
    rendezvous.run(count);
  // All operands are ones.
  for (float sum : rendezvous.result(numDevices - 1))
    if (sum != numDevices) {
      state.SkipWithError("the peer's sum is wrong");
      break;
    }
  setSeconds(state, count);
}

void shardc::rt::bench::registerAllReduces() {
  for (int64_t bytes : allReduceBytes) {
    for (bool share : {false, true})
      add(share ? "all_reduce/shared" : "all_reduce/shardc",
          [share](benchmark::State &state) { runAllReduces(state, share); })
          ->Arg(bytes);
    add("all_reduce/rendezvous", runRendezvous)->Arg(bytes);
  }
}

/// Arguments: devices, and the iterations of the kernel.
static void runEmptyKernels(benchmark::State &state) {
  constexpr int64_t count = 1000;
  check(state,
        runSteps(state, makeLaunchPlan(state.range(0), count, state.range(1))));
  setSeconds(state, count);
}

void shardc::rt::bench::registerOverhead() {
  add("overhead", runEmptyKernels)
      ->Args({1, 1})
      ->Args({1, 16})
      ->Args({8, 1})
      ->Args({8, 16});
}

void shardc::rt::bench::registerUpdate(const std::string &path) {
  add("update/" + path, [path](benchmark::State &state) {
    PlanOrError plan = makeUpdatePlan(path);
    check(state, runSteps(state, plan));
    if (!plan.ok())
      return;
    // Parameters, gradients and both states of Adam are read, all but the
    // gradients are written.
    uint64_t parameters = 0;
    for (const TensorSpec &tensor : (*plan)->spec().tensors)
      if (tensor.role == Role::Parameter)
        parameters += tensor.bytes;
    setRate(state, "bytes", 7.0 * parameters);
  });
}
