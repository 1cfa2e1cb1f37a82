//===- Session.cpp - One run of shardc-run --------------------------------===//

#include "Session.h"

#include "CheckReference.h"
#include "Checkpoints.h"
#include "CompareProcesses.h"
#include "Devices.h"
#include "LoadData.h"
#include "LoadPlan.h"
#include "MeasureMachine.h"
#include "Outputs.h"
#include "Report.h"
#include "Signals.h"
#include "Summary.h"

#include "data/Batches.h"
#include "plan/PlanSpec.h"
#include "shardc-rt/Watchdog.h"
#include "train/Format.h"
#include "train/Header.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <iostream>
#include <new>
#include <unistd.h>

using namespace shardc;
using namespace shardc::run;
using namespace shardc::rt;

namespace {
/// A run, step by step. Each step returns exit code 0, or the code and an error
/// printed; `run` has their order.
class Session {
public:
  /// `watchdog` is borrowed.
  Session(const Arguments &arguments, const Peers &peers, Watchdog &watchdog)
      : arguments(arguments), watchdog(watchdog), store(peers.store()),
        isFirst(!store || store->ranks().rank == 0),
        devices(this->arguments, peers) {}
  ~Session() { watchdog.explainBy(nullptr); }

  int run();

private:
  int openPlan();
  int openCheckpoints();
  int loadDatasets();
  int load(const std::string &spec, Dataset &dataset);
  int load(const std::vector<std::string> &specs,
           std::vector<Dataset> &datasets);
  int loadInputs();
  int createExecutor();
  int initialize();
  int createReference();
  int checkEvaluation();
  int train();
  int createTrace();
  int writeTrace();
  int reportNoTrace(const std::string &why);
  int save();
  int finishCheckpoints();
  void addCheckpoints();
  int evaluate();
  int predict();
  int compareWithReference();
  void printResults();
  int sayStopped(int code) const;

  /// With the actions of each step.
  TrainOptions trainOptions();
  absl::StatusOr<Evaluation> runEvaluation();
  absl::Status evaluateAfter(const EpochSummary &epoch);
  absl::StatusOr<Batch> batchOfStep(int64_t step);
  /// Whether to end early: because of a signal to any process, or `lost`.
  bool shouldStop();
  /// Prints `lost`, if there is anything. Returns the exit code.
  int reportLost() const { return lost.ok() ? 0 : report(lost); }
  /// Prints why the training failed, and waits for the checkpoint that is being
  /// written. Returns the exit code.
  int failTraining(const absl::Status &error);
  /// The stream for people. With --json standard output holds the summary
  /// alone. Of several processes the first one prints.
  std::ostream &out() {
    return !isFirst ? silence : arguments.json ? std::cerr : std::cout;
  }
  /// A launcher's processes have a terminal of its own, whatever reads it.
  bool mayDrawProgress() const {
    return !arguments.json && !devices.isLaunched() && isatty(STDOUT_FILENO);
  }

  Arguments arguments;
  Watchdog &watchdog;
  /// What is done goes on, and has the whole time again.
  const std::function<void()> onProgress = [this] { watchdog.noteProgress(); };
  Store *store; ///< Of all processes; null: there is one.
  bool isFirst;
  std::ostream silence{nullptr};
  Devices devices;
  std::shared_ptr<const Plan> plan;
  ExecutorOptions executorOptions;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<ReferenceCheck> check; ///< Null: not asked for.
  Dataset trainingData;                  ///< Or that to predict for.
  int64_t lastStep = 0;                  ///< That has ended.
  std::optional<Dataset> evaluationData;
  /// The order of the rows in an epoch; the last one asked for.
  std::pair<int64_t, std::vector<int64_t>> rowsOfEpoch{-1, {}};
  std::optional<Agreement> agreement; ///< While there is work to lose.
  absl::Status lost;                  ///< Why processes no longer agree.
  bool isSaved = false;               ///< Parameters, where asked for.
  Checkpoints checkpoints;
  bool areCheckpointsDone = false; ///< The last step is in one.
  Metrics metrics;
  std::unique_ptr<Trace> trace; ///< Null: not asked for.
  RunSummary summary;
};
} // namespace

int Session::run() {
  if (arguments.checkPlan) {
    if (int code = openPlan())
      return code;
    return printOrder(*plan, arguments.json);
  }
  if (int code = isFirst ? checkOutputs(arguments) : 0)
    return code;
  if (int code = isFirst ? checkCheckpointDir(arguments) : 0)
    return code;
  if (int code = devices.find())
    return code;
  watchdog.begin("loading the plan");
  if (int code = openPlan())
    return code;
  if (int code = isFirst ? checkRoom(arguments, *plan) : 0)
    return code;
  devices.place(*plan);
  if (arguments.dryRun && arguments.json) {
    printJsonPlan(*plan, devices.describe(*plan), arguments, std::cout);
    return 0;
  }
  printHeader(*plan, devices.describe(*plan), arguments.cpuTarget, out());
  if (arguments.dryRun)
    return 0;
  for (auto [activity, step] :
       {std::make_pair("opening checkpoints", &Session::openCheckpoints),
        {"loading data", &Session::loadDatasets},
        {"allocating memory and preparing programs", &Session::createExecutor},
        {"setting parameters", &Session::initialize},
        {"checking the data", &Session::checkEvaluation},
        {"preparing the reference", &Session::createReference},
        {"preparing the trace", &Session::createTrace}}) {
    watchdog.begin(activity);
    if (int code = (this->*step)())
      return code;
  }

  agreement.emplace(store, arguments.deadline,
                    [this] { return checkpoints.isDueByTime(); });
  int code = 0;
  if (!arguments.predict.empty())
    code = predict();
  if (arguments.isTraining()) {
    if (int failed = train()) {
      // Of several processes none writes a trace without the others.
      if (trace && !store)
        writeTrace();
      if (arguments.json && !summary.error.empty())
        printResults();
      return failed;
    }
    // Before anything else can fail.
    watchdog.begin("saving parameters");
    code = save();
    watchdog.begin("writing the last checkpoint");
    if (int unwritten = finishCheckpoints())
      code = unwritten;
    if (code == 0)
      code = metrics.exitCode();
    if (int untraced = trace ? writeTrace() : 0; code == 0)
      code = untraced;
  }
  if (int failed = evaluate())
    return failed;
  watchdog.begin("comparing with the reference");
  if (int failed = compareWithReference())
    return failed;
  printResults();
  if (summary.stoppedBy)
    return sayStopped(code);
  if (summary.reference &&
      summary.reference->verdict == ReferenceResult::Verdict::Mismatch)
    return report(3, "the result differs from the unpartitioned program's");
  return code;
}

int Session::openPlan() {
  if (!arguments.isGiven("target") && !devices.target().empty())
    arguments.compile.target = devices.target();
  if (int code = readPipe(arguments))
    return code;
  if (int code = store ? compareProcesses(arguments, *store) : 0)
    return code;
  if (int code = loadPlan(arguments, /*singleDevice=*/false, plan))
    return code;
  if (int code = checkAgainstPlan(arguments, *plan))
    return code;
  if (!arguments.predict.empty() && !plan->findProgram("predict"))
    return report(missingProgram(plan->spec(), "predict"));
  return 0;
}

int Session::openCheckpoints() {
  return checkpoints.open(arguments, *plan, store, onProgress, out());
}

int Session::load(const std::vector<std::string> &specs,
                  std::vector<Dataset> &datasets) {
  if (int code = loadData(specs, arguments, *plan,
                          arguments.predict.empty() ? "" : "predict",
                          store != nullptr, onProgress, datasets))
    return code;
  for (const Dataset &dataset : datasets) {
    if (isFirst)
      for (const std::string &warning : dataset.warnings)
        report(0, absl::StrCat("warning: ", warning));
    for (const std::string &note : dataset.notes)
      printField("data", absl::StrCat(dataset.name, ": ", note), out());
  }
  return 0;
}

int Session::load(const std::string &spec, Dataset &dataset) {
  std::vector<Dataset> datasets;
  if (int code = load(std::vector<std::string>{spec}, datasets))
    return code;
  dataset = std::move(datasets[0]);
  return 0;
}

static const char forms[] = "FILE.npz, X.npy,Y.npy, FILE.csv, "
                            "synthetic:quadratic, digits, digits:train or "
                            "digits:test";

int Session::loadInputs() {
  if (arguments.data.empty())
    return report(
        1, absl::StrCat("no data to predict for: expected --data=", forms));
  return load(arguments.data, trainingData);
}

int Session::loadDatasets() {
  if (!arguments.predict.empty())
    return loadInputs();
  if (arguments.evalData.empty() && absl::StartsWith(arguments.data, "digits"))
    arguments.evalData = "digits:test";
  if (arguments.evaluateOnly) {
    if (arguments.evalData.empty())
      return report(1, absl::StrCat("no data to evaluate on: expected "
                                    "--eval-data=",
                                    forms));
    return load(arguments.evalData, evaluationData.emplace());
  }
  if (arguments.data.empty())
    return report(1, absl::StrCat("no data given: expected --data=", forms));
  if (arguments.evalEvery > 0 && arguments.evalData.empty())
    return report(1, absl::StrCat("--eval-every: no data to evaluate on: "
                                  "expected --eval-data=",
                                  forms));
  std::vector<std::string> specs{arguments.data};
  if (!arguments.evalData.empty())
    specs.push_back(arguments.evalData);
  std::vector<Dataset> datasets;
  if (int code = load(specs, datasets))
    return code;
  trainingData = std::move(datasets[0]);
  if (datasets.size() > 1)
    evaluationData = std::move(datasets[1]);
  if (trainingData.rows < plan->batchSize())
    return report(2, absl::StrCat(trainingData.name, " has ", trainingData.rows,
                                  " rows, fewer than the batch size ",
                                  plan->batchSize()));
  return 0;
}

int Session::createExecutor() {
  executorOptions.seed = arguments.seed;
  executorOptions.poisonPadding = arguments.checkReference;
  executorOptions.shareReplicas = !arguments.noAliasReplicas;
  executorOptions.orderedSums = arguments.orderedSums;
  executorOptions.cpuTarget = arguments.cpuTarget;
  if (isFirst)
    executorOptions.onInitialize =
        InitializationProgress(out(), mayDrawProgress());
  absl::StatusOr<std::unique_ptr<Executor>> created =
      devices.createExecutor(plan, executorOptions);
  if (!created.ok())
    return report(created.status());
  executor = *std::move(created);
  watchdog.explainBy([this] { return executor->describeRun(); });
  printMemory(*executor, out());
  if (uint64_t bytes = executor->scratchBytesPerDevice())
    printField("scratch",
               absl::StrCat(bytes, " B per device beside that, for libraries "
                                   "and kernels"),
               out());
  return 0;
}

int Session::initialize() {
  if (int code = checkpoints.reserve(*plan))
    return code;
  if (checkpoints.isResumed())
    return checkpoints.load(arguments, *executor, out());
  absl::Status status = executor->initializeParameters();
  if (status.ok() && !arguments.loadParams.empty())
    status = loadParameters(*executor, arguments.loadParams, onProgress);
  return status.ok() ? 0 : report(status);
}

int Session::createReference() {
  if (!arguments.checkReference)
    return 0;
  std::shared_ptr<const Plan> referencePlan;
  if (int code = loadPlan(arguments, /*singleDevice=*/true, referencePlan))
    return code;
  if (int code = devices.checkMemory(executor->allocatedBytes(),
                                     referencePlan->arenaBytes() +
                                         stateCopyBytes(*plan)))
    return code;
  ExecutorOptions options = executorOptions;
  options.onInitialize = nullptr;
  absl::StatusOr<std::unique_ptr<Executor>> reference =
      devices.createReference(referencePlan, options);
  if (!reference.ok())
    return report(reference.status());
  check = std::make_unique<ReferenceCheck>(
      *executor, *std::move(reference), arguments.tolerance,
      [this](int64_t step) { return batchOfStep(step); }, checkpoints.start());
  return 0;
}

int Session::checkEvaluation() {
  if (!evaluationData)
    return 0;
  absl::Status status = rt::checkEvaluation(*executor, *evaluationData);
  return status.ok() ? 0 : report(status);
}

TrainOptions Session::trainOptions() {
  TrainOptions options;
  options.epochs = arguments.epochs;
  options.steps = arguments.steps;
  options.seed = arguments.seed;
  options.shuffle = !arguments.noShuffle;
  options.logEvery = arguments.logEvery;
  options.progressBar = isFirst && mayDrawProgress();
  options.start = checkpoints.start();
  options.shouldStop = [this] { return shouldStop(); };
  if (checkpoints.isWriting()) {
    options.shouldSave = [this](int64_t steps) {
      return checkpoints.isDueAfter(steps) || agreement->takeDue();
    };
    options.onSave = [this](const TrainProgress &progress) {
      watchdog.begin(absl::StrCat("writing the checkpoint of step ",
                                  checkpoints.lastBegunStep()));
      if (absl::Status status = checkpoints.wait(); !status.ok())
        return status;
      watchdog.begin(
          absl::StrCat("copying the checkpoint of step ", progress.steps));
      const Trace::Clock::time_point begin = Trace::Clock::now();
      absl::Status status = checkpoints.save(*executor, progress);
      if (trace)
        trace->add("training", absl::StrCat("copy step ", progress.steps),
                   begin, Trace::Clock::now());
      return status;
    };
  }
  if (arguments.evalEvery > 0)
    options.onEpoch = [this](const EpochSummary &epoch) {
      return evaluateAfter(epoch);
    };
  const ProgramInfo *program = plan->findProgram("train_step");
  uint64_t reported = program ? program->wireBytes : 0;
  options.trace = trace.get();
  options.wholeBatches = check != nullptr;
  options.beforeBatch = [this](int64_t step) {
    if (trace)
      trace->setRecording(arguments.traceFirst <= step &&
                          step <= arguments.traceLast);
  };
  options.onBatch = [this](const Batch &batch) {
    return check ? check->step(batch) : absl::OkStatus();
  };
  options.onStep = [this, reported](const StepRecord &record,
                                    const RunResult &result) {
    if (trace && record.step == arguments.traceLast)
      trace->setRecording(false);
    metrics.add(record, result);
    if (absl::Status status = checkpoints.takeResults(); !status.ok())
      return status;
    if (result.wireBytes != reported)
      return absl::InternalError(
          absl::StrCat("the collectives of a step sent ", result.wireBytes,
                       " bytes per device, the plan reports ", reported));
    if (check)
      check->addLoss(result.loss);
    lastStep = record.step;
    watchdog.begin(absl::StrCat("step ", record.step + 1));
    return absl::OkStatus();
  };
  return options;
}

/// The batch that training takes at a step, from 0.
absl::StatusOr<Batch> Session::batchOfStep(int64_t step) {
  int64_t batchSize = plan->batchSize();
  int64_t stepsPerEpoch = trainingData.rows / batchSize;
  if (rowsOfEpoch.first != step / stepsPerEpoch)
    rowsOfEpoch = {step / stepsPerEpoch,
                   orderOfRows(trainingData.rows, arguments.seed,
                               !arguments.noShuffle, step / stepsPerEpoch)};
  return gatherBatch(trainingData, rowsOfEpoch.second,
                     step % stepsPerEpoch * batchSize, batchSize);
}

bool Session::shouldStop() {
  if (!lost.ok())
    return true;
  absl::StatusOr<int> signal = agreement->ask();
  if (!signal.ok()) {
    lost = signal.status();
    return true;
  }
  summary.stoppedBy = *signal;
  return summary.stoppedBy != 0;
}

int Session::failTraining(const absl::Status &error) {
  watchdog.begin("ending");
  summary.error = std::string(error.message());
  // Which collective it was is in the error.
  int code = report(
      store ? absl::Status(error.code(),
                           absl::StrCat(error.message(),
                                        "; the last step of rank ",
                                        store->ranks().rank, " was ", lastStep))
            : error);
  watchdog.begin("writing the last checkpoint");
  // Whatever came of it, this error is the first.
  checkpoints.wait().IgnoreError();
  if (!checkpoints.last().empty())
    report(code, absl::StrCat("the last checkpoint is ", checkpoints.last()));
  addCheckpoints();
  return code;
}

int Session::train() {
  if (isFirst && !arguments.metrics.empty())
    if (int code = metrics.open(arguments.metrics, checkpoints.start().steps))
      return code;
  lastStep = checkpoints.start().steps;
  watchdog.begin(absl::StrCat("step ", lastStep + 1));
  absl::StatusOr<TrainSummary> trained =
      rt::train(*executor, trainingData, trainOptions(), out());
  absl::Status status = trained.status();
  status.Update(lost);
  if (!status.ok())
    return failTraining(status);
  summary.training = *std::move(trained);
  return 0;
}

int Session::reportNoTrace(const std::string &why) {
  return isFirst
             ? report(1, absl::StrCat("--trace-steps=", arguments.traceFirst,
                                      ":", arguments.traceLast, ": ", why))
             : 1;
}

int Session::createTrace() {
  if (arguments.trace.empty() && !arguments.profile)
    return 0;
  absl::StatusOr<int64_t> last =
      lastStepOf(trainOptions(), trainingData, plan->batchSize());
  if (!last.ok())
    return report(last.status());
  TraceOptions options;
  options.firstStep =
      std::max(arguments.traceFirst, checkpoints.start().steps + 1);
  if (options.firstStep > std::min(arguments.traceLast, *last))
    return reportNoTrace(absl::StrCat(
        "none of these steps would be run; the training goes from step ",
        checkpoints.start().steps, " to ", *last));
  options.runs = arguments.traceLast - arguments.traceFirst + 1;
  trace = std::make_unique<Trace>(options);
  checkpoints.record(trace.get());
  absl::Status status = executor->setTrace(trace.get());
  return status.ok() ? 0 : report(status);
}

int Session::writeTrace() {
  watchdog.begin("writing the trace");
  trace->setRecording(false);
  if (absl::Status status = checkpoints.takeResults(); !status.ok())
    return report(status);
  if (trace->numRuns() == 0)
    return reportNoTrace(absl::StrCat(
        "none of these steps was run; the last one is ", lastStep));
  if (arguments.profile && isFirst)
    summary.profile = reportProfile(*trace, *plan, devices);
  if (!arguments.trace.empty()) {
    const bool isOfGpus = store && !devices.processes();
    absl::Status status =
        isOfGpus ? trace->write(arguments.trace, *store)
                 : trace->write(arguments.trace, devices.processes());
    if (!status.ok())
      return report(1, absl::StrCat("--trace=", status.message()));
    printField("trace", arguments.trace, out());
  }
  if (uint64_t lost = trace->numLost())
    std::cerr << "shardc-run: " << lost
              << " spans did not fit into the memory of the trace, the "
                 "earliest ones: trace fewer steps\n";
  return 0;
}

/// Adds the checkpoints that were written to the summary.
void Session::addCheckpoints() {
  if (!checkpoints.last().empty())
    summary.checkpoint = {checkpoints.count(), checkpoints.lastStep(),
                          checkpoints.last(), checkpoints.copySeconds()};
}

/// Writes the last checkpoint.
int Session::finishCheckpoints() {
  int code = checkpoints.finish(*executor, summary.training->progress);
  areCheckpointsDone = checkpoints.isWriting() && code == 0;
  addCheckpoints();
  return code;
}

int Session::save() {
  if (arguments.saveParams.empty())
    return 0;
  int code = run::saveParameters(*executor, arguments.saveParams, onProgress);
  isSaved = code == 0;
  return code;
}

absl::StatusOr<Evaluation> Session::runEvaluation() {
  // It asks before each batch.
  return rt::evaluate(*executor, *evaluationData, [this] {
    watchdog.begin("evaluation");
    return shouldStop();
  });
}

absl::Status Session::evaluateAfter(const EpochSummary &epoch) {
  int64_t stepsPerEpoch = trainingData.rows / plan->batchSize();
  if (epoch.epoch % arguments.evalEvery != 0 || epoch.steps < stepsPerEpoch ||
      shouldStop())
    return absl::OkStatus();
  absl::StatusOr<Evaluation> evaluated = runEvaluation();
  if (absl::IsCancelled(evaluated.status()))
    return absl::OkStatus();
  if (!evaluated.ok())
    return evaluated.status();
  summary.evaluations.push_back(
      {epoch.epoch, epoch.epoch * stepsPerEpoch, *evaluated});
  out() << "epoch " << epoch.epoch << "  evaluation: " << describe(*evaluated)
        << "\n";
  return absl::OkStatus();
}

int Session::evaluate() {
  if (!evaluationData)
    return 0;
  if (shouldStop())
    return reportLost();
  int64_t steps = summary.training ? summary.training->steps : 0;
  if (!summary.evaluations.empty() &&
      summary.evaluations.back().step == steps) {
    summary.evaluation = summary.evaluations.back().evaluation;
    return 0;
  }
  absl::StatusOr<Evaluation> evaluated = runEvaluation();
  if (absl::IsCancelled(evaluated.status()))
    return reportLost();
  if (!evaluated.ok())
    return report(evaluated.status());
  summary.evaluation = *evaluated;
  return 0;
}

int Session::predict() {
  absl::StatusOr<HostArray> predictions =
      rt::predict(*executor, trainingData, [this] {
        watchdog.begin("prediction");
        return shouldStop();
      });
  if (absl::IsCancelled(predictions.status()))
    return 0;
  if (!predictions.ok())
    return report(predictions.status());
  summary.prediction = {arguments.predict, predictions->dtype,
                        predictions->shape};
  // All processes have all rows; one writes.
  ArrayMap arrays;
  arrays.emplace("prediction", *std::move(predictions));
  watchdog.begin("writing predictions");
  return isFirst ? savePredictions(arrays, arguments.predict) : 0;
}

int Session::compareWithReference() {
  if (!check)
    return 0;
  if (shouldStop())
    return reportLost();
  absl::StatusOr<ReferenceResult> result = check->finish();
  if (!result.ok())
    return report(result.status());
  summary.reference = *std::move(result);
  return 0;
}

void Session::printResults() {
  if (!isFirst)
    return;
  if (arguments.json)
    printJsonSummary(*executor, summary, arguments, std::cout);
  else
    printSummary(summary, out());
}

/// Prints the signal that ended the run; returns its exit code, or 0 if all of
/// the work was saved. `saved` is the code of saving it.
int Session::sayStopped(int saved) const {
  bool isAllSaved = areCheckpointsDone && saved == 0;
  int code = isAllSaved ? 0 : 128 + summary.stoppedBy;
  if (!isFirst)
    return code;
  std::string how = absl::StrCat("ended by ", signalName(summary.stoppedBy));
  const std::string kept =
      isSaved ? absl::StrCat("; the parameters are in ", arguments.saveParams)
              : "";
  if (areCheckpointsDone)
    absl::StrAppend(&how, " after step ", summary.training->steps,
                    "; all of the work is in ", checkpoints.last(),
                    ", and --resume goes on");
  else if (summary.training && !summary.training->isStopped)
    absl::StrAppend(
        &how, " after the last step, ", summary.training->steps, kept,
        evaluationData && !summary.evaluation ? "; the evaluation is left out"
                                              : "",
        check && !summary.reference
            ? "; the comparison with the reference is left out"
            : "");
  else if (summary.training)
    absl::StrAppend(
        &how, " after step ", summary.training->steps, kept,
        arguments.saveParams.empty()
            ? "; the parameters are not kept, since there is no --save-params"
            : "");
  return report(code, how);
}

int shardc::run::runSession(const Arguments &arguments) {
  if (arguments.device != "cpu" && arguments.device != "cuda")
    return report(1, absl::StrCat("unknown device \"", arguments.device,
                                  "\"; expected cpu or cuda"));
  if (arguments.listDevices)
    return listDevices(arguments);
  bool measures = !arguments.measureMachine.empty();
  bool isAlone = arguments.checkPlan || arguments.dryRun;
  if (isAlone && isSecondProcess())
    return 0;
  Peers peers;
  Watchdog watchdog({arguments.deadline, arguments.heartbeat, endNow});
  if (!isAlone) {
    watchdog.begin("waiting for the other processes");
    if (int code = joinRanks(arguments, peers))
      return code;
  }
  if (peers.ofCpus)
    speakFor(*peers.ofCpus);
  watchdog.watch(peers.store());
  int code = 0;
  try {
    code = measures ? measureMachine(arguments, peers)
                    : Session(arguments, peers, watchdog).run();
  } catch (const std::bad_alloc &) {
    code = report(4, "out of memory: this process may have no more");
  }
  watchdog.begin("ending");
  // Nobody waits for a process that has failed. A stop is agreed on.
  if (code != 0 && code < 128 && peers.store())
    peers.store()->fail(lastError());
  else if (peers.ofCpus)
    if (absl::Status status = peers.ofCpus->end(); !status.ok())
      code = report(status);
  watchdog.watch(nullptr);
  stopSpeaking();
  return code;
}
