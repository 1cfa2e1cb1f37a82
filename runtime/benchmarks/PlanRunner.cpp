//===- PlanRunner.cpp - A plan with a batch that stays --------------------===//

#include "PlanRunner.h"

#include "shardc-rt/Trainer.h"

#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace shardc::rt;
using namespace shardc::rt::bench;

uint64_t shardc::rt::bench::residentBytes() {
  // Pages: all, resident, ...
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Values do not matter for the time as long as they are ordinary numbers.
static HostArray makeArray(const TensorInfo &tensor) {
  HostArray array(tensor.dtype, tensor.shape);
  constexpr float pattern[] = {0.5f, -1.0f, 0.25f, 1.5f, -0.75f, 0.125f, -0.5f};
  if (tensor.dtype == DType::F32)
    for (size_t i = 0; i < array.values<float>().size(); ++i)
      array.values<float>()[i] = pattern[i % 7];
  if (tensor.dtype == DType::I32 && tensor.labelClasses > 0)
    for (size_t i = 0; i < array.values<int32_t>().size(); ++i)
      array.values<int32_t>()[i] = i % tensor.labelClasses;
  return array;
}

absl::StatusOr<std::unique_ptr<PlanRunner>>
PlanRunner::create(Context &context, Processes *processes,
                   const std::string &path, const std::string &cpuTarget) {
  absl::StatusOr<std::shared_ptr<const Plan>> plan = Plan::loadFile(path);
  if (!plan.ok())
    return plan.status();
  auto runner = std::make_unique<PlanRunner>();
  for (const TensorInfo &tensor : (*plan)->tensors())
    if (tensor.role == Role::Input || tensor.role == Role::Label) {
      HostArray &array =
          runner->batch.emplace(tensor.name, makeArray(tensor)).first->second;
      runner->views.emplace(tensor.name, array.view());
    }
  uint64_t before = residentBytes();
  ExecutorOptions options;
  options.processes = processes;
  options.cpuTarget = cpuTarget;
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      Executor::create(context, *plan, options);
  if (!executor.ok())
    return executor.status();
  runner->executor = *std::move(executor);
  absl::Status status = runner->executor->initializeParameters();
  if (status.ok())
    status = runner->run(1);
  if (!status.ok())
    return status;
  uint64_t after = residentBytes();
  runner->grown = after > before ? after - before : 0;
  return runner;
}

absl::Status PlanRunner::run(int64_t steps) {
  for (int64_t step = 0; step < steps; ++step)
    if (absl::StatusOr<RunResult> result = executor->step(views); !result.ok())
      return result.status();
  return absl::OkStatus();
}

absl::Status PlanRunner::readDigits(const std::string &dataDir) {
  DatasetOptions options;
  options.dataDirs = {dataDir};
  absl::StatusOr<std::vector<Dataset>> read =
      loadDatasets({"digits:train", "digits:test"}, options);
  if (!read.ok())
    return read.status();
  for (Dataset &set : *read)
    if (absl::Status status = fitToPlan(executor->plan(), set); !status.ok())
      return status;
  trainSet = std::move((*read)[0]);
  testSet = std::move((*read)[1]);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PlanRunner::runEpoch() {
  TrainOptions options;
  options.epochs = 1;
  options.seed = epoch++;
  std::ostringstream log;
  absl::StatusOr<TrainSummary> summary =
      train(*executor, trainSet, options, log);
  if (!summary.ok())
    return summary.status();
  absl::StatusOr<Evaluation> evaluation = evaluate(*executor, testSet);
  if (!evaluation.ok())
    return evaluation.status();
  return summary->steps;
}
