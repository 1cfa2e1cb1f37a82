//===- PlanRunner.h - A plan with a batch that stays ------------*- C++ -*-===//

#ifndef SHARDC_RT_BENCHMARKS_PLANRUNNER_H
#define SHARDC_RT_BENCHMARKS_PLANRUNNER_H

#include "shardc-rt/Dataset.h"
#include "shardc-rt/Executor.h"

namespace shardc::rt::bench {

/// Bytes of this process that are in memory.
uint64_t residentBytes();

class PlanRunner {
public:
  /// Loads the plan at `path`, with the kernels for `cpuTarget`, as in
  /// `ExecutorOptions`, and gives parameters their initial values. The
  /// context must outlive the runner, and the processes that have its devices;
  /// null: this one alone.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<PlanRunner>>
  create(Context &context, Processes *processes, const std::string &path,
         const std::string &cpuTarget = "");

  /// Runs `steps` train steps on one batch. As in an application, the time
  /// includes giving devices their shards of the arrays.
  [[nodiscard]] absl::Status run(int64_t steps);

  /// Reads the shipped digits in `dataDir`.
  [[nodiscard]] absl::Status readDigits(const std::string &dataDir);

  /// One epoch of the digits read: trains on all batches, in another order than
  /// the epoch before, and evaluates on the test part. Gives the number of
  /// train steps.
  [[nodiscard]] absl::StatusOr<int64_t> runEpoch();

  Executor &get() { return *executor; }
  const Executor &get() const { return *executor; }
  /// The growth of the process while the executor was made and ran a step.
  uint64_t grownBytes() const { return grown; }

private:
  std::unique_ptr<Executor> executor;
  ArrayMap batch;
  NamedArrays views;
  Dataset trainSet, testSet;
  uint64_t epoch = 0;
  uint64_t grown = 0;
};

} // namespace shardc::rt::bench

#endif // SHARDC_RT_BENCHMARKS_PLANRUNNER_H
