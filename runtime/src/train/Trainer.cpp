//===- Trainer.cpp - The training loop ------------------------------------===//

#include "shardc-rt/Trainer.h"

#include "data/Batches.h"
#include "train/Format.h"
#include "train/StepLog.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <chrono>
#include <cmath>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {
/// One call of `train`.
class Training {
public:
  Training(Executor &executor, std::unique_ptr<BatchStream> batches,
           const TrainOptions &options, std::ostream &out)
      : executor(executor), options(options), out(out),
        batchSize(executor.plan().batchSize()), batches(std::move(batches)),
        stepsPerEpoch(this->batches->batchesPerEpoch()), log(options, out) {
    steps = options.steps;
    if (options.epochs > 0 || steps == 0) {
      int64_t epochs = std::max<int64_t>(1, options.epochs);
      // If the product overflows there is no limit.
      int64_t byEpochs = epochs > INT64_MAX / stepsPerEpoch
                             ? INT64_MAX
                             : epochs * stepsPerEpoch;
      steps = steps == 0 ? byEpochs : std::min(steps, byEpochs);
    }
  }

  absl::StatusOr<TrainSummary> run();

private:
  absl::Status begin();
  absl::Status end();
  absl::Status endEpoch();

  Executor &executor;
  const TrainOptions &options;
  std::ostream &out;
  int64_t batchSize;
  std::unique_ptr<BatchStream> batches;
  int64_t stepsPerEpoch;
  StepLog log;
  int64_t steps; ///< Fewer once training is stopped.
  int64_t begun = 0;
  TrainSummary summary; ///< Its steps have ended.
  EpochSummary epoch;   ///< The current one; `meanLoss` is the sum so far.
  double communication = 0, computing = 0;
  Clock::time_point start, epochStart, last;
};
} // namespace

/// Begins as many steps as can be in flight.
absl::Status Training::begin() {
  // The work after an epoch runs programs, too.
  int64_t limit = steps;
  if (options.onEpoch)
    limit =
        std::min(limit, (summary.steps / stepsPerEpoch + 1) * stepsPerEpoch);
  while (begun < limit && executor.inFlight() < executor.maxInFlight()) {
    if (options.shouldStop && options.shouldStop()) {
      summary.isStopped = true;
      steps = begun;
      break;
    }
    const Batch &batch = batches->next();
    if (options.onBatch)
      if (absl::Status status = options.onBatch(batch); !status.ok())
        return status;
    if (absl::Status status = executor.submit("train_step", batch.views());
        !status.ok())
      return status;
    ++begun;
  }
  return absl::OkStatus();
}

/// Ends the oldest step in flight.
absl::Status Training::end() {
  absl::StatusOr<RunResult> result = executor.await();
  if (!result.ok())
    return result.status();
  Clock::time_point now = Clock::now();
  StepRecord record;
  record.step = summary.steps + 1;
  record.steps = steps;
  record.epoch = summary.steps / stepsPerEpoch + 1;
  record.stepInEpoch = summary.steps % stepsPerEpoch + 1;
  record.stepsPerEpoch = stepsPerEpoch;
  record.samplesPerSecond =
      batchSize / std::chrono::duration<double>(now - last).count();
  record.secondsLeft = since(start) / record.step * (steps - record.step);
  last = now;
  if (options.onStep)
    if (absl::Status status = options.onStep(record, *result); !status.ok())
      return status;
  if (!std::isfinite(result->loss)) {
    log.clear();
    return absl::OutOfRangeError(
        absl::StrCat("the loss is ", result->loss, " at step ", record.step,
                     " (epoch ", record.epoch, "); training stops"));
  }
  log.add(record, result->loss);
  communication += result->communicationSeconds;
  computing += result->seconds;
  summary.wireBytesPerStep = result->wireBytes;
  if (summary.steps == 0)
    summary.firstLoss = result->loss;
  summary.finalLoss = result->loss;
  ++summary.steps;
  epoch.epoch = record.epoch;
  epoch.meanLoss += result->loss;
  ++epoch.steps;
  return record.stepInEpoch == stepsPerEpoch ? endEpoch() : absl::OkStatus();
}

absl::Status Training::endEpoch() {
  epoch.meanLoss /= epoch.steps;
  epoch.seconds = since(epochStart);
  log.clear();
  out << absl::StrFormat(
      "epoch %d  loss %.6g  %s  %.0f samples/s\n", epoch.epoch, epoch.meanLoss,
      formatSeconds(epoch.seconds), epoch.steps * batchSize / epoch.seconds);
  summary.epochs.push_back(epoch);
  epoch = EpochSummary();
  if (options.onEpoch)
    if (absl::Status status = options.onEpoch(summary.epochs.back());
        !status.ok())
      return status;
  epochStart = last = Clock::now();
  return absl::OkStatus();
}

absl::StatusOr<TrainSummary> Training::run() {
  start = epochStart = last = Clock::now();
  while (summary.steps < steps) {
    if (absl::Status status = begin(); !status.ok())
      return status;
    // None is in flight if training was stopped.
    if (summary.steps < steps)
      if (absl::Status status = end(); !status.ok())
        return status;
  }
  if (epoch.steps > 0)
    if (absl::Status status = endEpoch(); !status.ok())
      return status;
  summary.seconds = since(start);
  if (summary.steps > 0)
    summary.samplesPerSecond = summary.steps * batchSize / summary.seconds;
  summary.bubble = executor.pipelineBubble("train_step");
  summary.communicationShare = computing > 0 ? communication / computing : 0;
  return summary;
}

absl::StatusOr<TrainSummary> shardc::rt::train(Executor &executor,
                                               const Dataset &dataset,
                                               const TrainOptions &options,
                                               std::ostream &out) {
  int64_t batchSize = executor.plan().batchSize();
  absl::StatusOr<std::unique_ptr<BatchStream>> batches =
      BatchStream::create(dataset, batchSize, options.seed, options.shuffle);
  if (!batches.ok())
    return batches.status();
  std::string rows = absl::StrCat(dataset.name, ": ", dataset.rows, " rows");
  if (int64_t rest = dataset.rows % batchSize)
    absl::StrAppend(&rows, "; the last ", rest,
                    " of each epoch do not fill a batch and are dropped");
  printField("data", rows, out);
  return Training(executor, *std::move(batches), options, out).run();
}
