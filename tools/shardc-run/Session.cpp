//===- Session.cpp - One run of shardc-run --------------------------------===//

#include "Session.h"

#include "CheckReference.h"
#include "Devices.h"
#include "LoadData.h"
#include "LoadPlan.h"
#include "Report.h"
#include "Summary.h"

#include "data/Npz.h"
#include "train/Header.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <iostream>
#include <unistd.h>

using namespace shardc::run;
using namespace shardc::rt;

namespace {
/// A run, step by step. Each step returns exit code 0, or the code and an error
/// printed; `run` has their order.
class Session {
public:
  /// `store` leads to the other processes; null: there are none.
  Session(const Arguments &arguments, Store *store)
      : arguments(arguments), isFirst(!store || store->ranks().rank == 0),
        devices(this->arguments, store) {}

  int run();

private:
  int openPlan();
  int loadDatasets();
  int createExecutor();
  int createReference();
  int trainAndEvaluate();
  int saveParameters();
  int compareWithReference();

  /// With what is checked of each step.
  TrainOptions trainOptions();
  /// Where people read how the run goes on. With --json standard output holds
  /// the summary alone. Of several processes the first speaks.
  std::ostream &out() {
    return !isFirst ? silence : arguments.json ? std::cerr : std::cout;
  }

  Arguments arguments;
  bool isFirst;
  std::ostream silence{nullptr};
  Devices devices;
  std::shared_ptr<const Plan> plan;
  ExecutorOptions executorOptions;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<ReferenceCheck> check; ///< Null: not asked for.
  Dataset trainingData;
  std::optional<Dataset> evaluationData;
};
} // namespace

int Session::run() {
  if (arguments.checkPlan) {
    if (int code = openPlan())
      return code;
    return printOrder(*plan);
  }
  if (int code = devices.find())
    return code;
  if (int code = openPlan())
    return code;
  devices.place(*plan);
  printHeader(*plan, devices.describe(*plan), out());
  if (arguments.dryRun)
    return 0;
  if (int code = loadDatasets())
    return code;
  if (int code = createExecutor())
    return code;
  if (arguments.checkReference)
    if (int code = createReference())
      return code;
  if (int code = trainAndEvaluate())
    return code;
  if (!arguments.saveParams.empty())
    if (int code = saveParameters())
      return code;
  return check ? compareWithReference() : 0;
}

int Session::openPlan() {
  if (arguments.target.empty() && !isPlanFile(arguments.input))
    arguments.target = devices.target();
  if (int code = loadPlan(arguments, /*singleDevice=*/false, plan))
    return code;
  return checkAgainstPlan(arguments, *plan);
}

int Session::loadDatasets() {
  if (arguments.data.empty())
    return report(1, "no data given: expected --data=FILE.npz, "
                     "synthetic:quadratic, digits, digits:train or "
                     "digits:test");
  if (int code = loadData(arguments.data, arguments, *plan, trainingData))
    return code;
  if (arguments.evalData.empty() && absl::StartsWith(arguments.data, "digits"))
    arguments.evalData = "digits:test";
  return arguments.evalData.empty() ? 0
                                    : loadData(arguments.evalData, arguments,
                                               *plan, evaluationData.emplace());
}

int Session::createExecutor() {
  executorOptions.seed = arguments.seed;
  executorOptions.poisonPadding = arguments.checkReference;
  executorOptions.shareReplicas = !arguments.noAliasReplicas;
  executorOptions.cpuTarget = arguments.cpuTarget;
  absl::StatusOr<std::unique_ptr<Executor>> created =
      devices.createExecutor(plan, executorOptions);
  if (!created.ok())
    return report(created.status());
  executor = *std::move(created);
  printMemory(*executor, out());
  if (uint64_t bytes = executor->scratchBytesPerDevice())
    out() << "scratch        " << bytes
          << " B per device beside that, for libraries and kernels\n";
  absl::Status status = executor->initializeParameters();
  if (status.ok() && !arguments.loadParams.empty())
    status = loadParameters(*executor, arguments.loadParams);
  return status.ok() ? 0 : report(status);
}

int Session::createReference() {
  std::shared_ptr<const Plan> referencePlan;
  if (int code = loadPlan(arguments, /*singleDevice=*/true, referencePlan))
    return code;
  absl::StatusOr<std::unique_ptr<Executor>> reference =
      devices.createReference(referencePlan, executorOptions);
  if (!reference.ok())
    return report(reference.status());
  absl::StatusOr<std::unique_ptr<ReferenceCheck>> created =
      ReferenceCheck::create(*executor, *std::move(reference),
                             arguments.tolerance);
  if (!created.ok())
    return report(created.status());
  check = *std::move(created);
  return 0;
}

TrainOptions Session::trainOptions() {
  TrainOptions options;
  options.epochs = arguments.epochs;
  options.steps = arguments.steps;
  options.seed = arguments.seed;
  options.shuffle = !arguments.noShuffle;
  options.logEvery = arguments.logEvery;
  if (isFirst)
    options.metricsPath = arguments.metrics;
  options.progressBar = isFirst && !arguments.json && isatty(STDOUT_FILENO);
  const ProgramInfo *program = plan->findProgram("train_step");
  uint64_t reported = program ? program->wireBytes : 0;
  options.onBatch = [this](const Batch &batch) {
    return check ? check->step(batch) : absl::OkStatus();
  };
  options.onStep = [this, reported](const RunResult &result) {
    if (result.wireBytes != reported)
      return absl::InternalError(
          absl::StrCat("the collectives of a step sent ", result.wireBytes,
                       " bytes per device, the plan reports ", reported));
    if (check)
      check->compare(result);
    return absl::OkStatus();
  };
  return options;
}

int Session::trainAndEvaluate() {
  absl::StatusOr<TrainSummary> summary =
      train(*executor, trainingData, trainOptions(), out());
  if (!summary.ok())
    return report(summary.status());
  std::optional<Evaluation> evaluation;
  if (evaluationData) {
    absl::StatusOr<Evaluation> evaluated = evaluate(*executor, *evaluationData);
    if (!evaluated.ok())
      return report(evaluated.status());
    evaluation = *evaluated;
  }
  if (isFirst && arguments.json)
    printJsonSummary(*executor, *summary, evaluation, std::cout);
  else
    printSummary(*summary, evaluation, out());
  return 0;
}

int Session::saveParameters() {
  // All processes give what they have; one writes.
  absl::StatusOr<ArrayMap> parameters = readParameters(*executor);
  if (!parameters.ok())
    return report(parameters.status());
  absl::Status written =
      isFirst ? writeNpz(arguments.saveParams, *parameters) : absl::OkStatus();
  return written.ok() ? 0 : report(written);
}

int Session::compareWithReference() {
  absl::StatusOr<bool> agrees = check->finish(out());
  if (!agrees.ok())
    return report(agrees.status());
  return *agrees ? 0
                 : report(3, "the result differs from the unpartitioned "
                             "program's");
}

int shardc::run::runSession(const Arguments &arguments) {
  if (arguments.device != "cpu" && arguments.device != "cuda")
    return report(1, absl::StrCat("unknown device \"", arguments.device,
                                  "\"; expected cpu or cuda"));
  if (arguments.listDevices)
    return listDevices(arguments);
  std::unique_ptr<Store> store;
  if (!arguments.checkPlan && !arguments.dryRun)
    if (int code = joinRanks(arguments, store))
      return code;
  int code = Session(arguments, store.get()).run();
  // Nobody waits for a process that has given up.
  if (code != 0 && store)
    store->fail(absl::StrCat("ended with exit code ", code));
  return code;
}
