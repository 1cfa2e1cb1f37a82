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
           int64_t stepsPerEpoch, int64_t steps, const TrainOptions &options,
           std::ostream &out)
      : executor(executor), options(options), out(out),
        batchSize(executor.plan().batchSize()), batches(std::move(batches)),
        stepsPerEpoch(stepsPerEpoch), log(options, out), steps(steps) {
    const TrainProgress &from = options.start;
    begun = saved = beforeEpoch = from.steps;
    summary.steps = summary.firstStep = from.steps;
    summary.firstLoss = from.firstLoss;
    summary.finalLoss = from.finalLoss;
    epoch.steps = begun % stepsPerEpoch;
    epoch.meanLoss = epoch.steps > 0 ? from.epochLossSum : 0;
  }

  absl::StatusOr<TrainSummary> run();

private:
  absl::Status begin();
  absl::Status end();
  absl::Status endEpoch();
  absl::Status save();
  TrainProgress progress() const;

  Executor &executor;
  const TrainOptions &options;
  std::ostream &out;
  int64_t batchSize;
  std::unique_ptr<BatchStream> batches;
  int64_t stepsPerEpoch;
  StepLog log;
  int64_t steps; ///< Fewer once training is stopped.
  int64_t begun = 0;
  bool isSaving = false;   ///< None begins before those begun are saved.
  int64_t saved = 0;       ///< Steps when the training was saved last.
  int64_t beforeEpoch = 0; ///< Steps when the epoch began, in this call.
  TrainSummary summary;    ///< Its steps have ended.
  EpochSummary epoch;      ///< The current one; `meanLoss` is the sum so far.
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
    if (begun > saved && options.shouldSave && options.shouldSave(begun)) {
      isSaving = true;
      break;
    }
    if (options.shouldStop && options.shouldStop()) {
      summary.isStopped = true;
      steps = begun;
      break;
    }
    if (options.beforeBatch)
      options.beforeBatch(begun + 1);
    const Clock::time_point asked = Clock::now();
    absl::StatusOr<const Batch *> batch = batches->next();
    if (!batch.ok())
      return batch.status();
    if (options.trace)
      options.trace->add("training", "wait for data", asked, Clock::now());
    if (options.onBatch)
      if (absl::Status status = options.onBatch(**batch); !status.ok())
        return status;
    if (absl::Status status = executor.submit("train_step", (*batch)->views());
        !status.ok())
      return status;
    ++begun;
  }
  return absl::OkStatus();
}

TrainProgress Training::progress() const {
  TrainProgress progress = options.start;
  progress.steps = summary.steps;
  progress.firstLoss = summary.firstLoss;
  progress.finalLoss = summary.finalLoss;
  progress.epochLossSum = epoch.meanLoss;
  return progress;
}

absl::Status Training::save() {
  isSaving = false;
  saved = begun;
  log.clear();
  return options.onSave ? options.onSave(progress()) : absl::OkStatus();
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
  record.secondsLeft =
      since(start) / (record.step - summary.firstStep) * (steps - record.step);
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
      formatSeconds(epoch.seconds),
      (summary.steps - beforeEpoch) * batchSize / epoch.seconds);
  beforeEpoch = summary.steps;
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
    if (!isSaving)
      if (absl::Status status = begin(); !status.ok())
        return status;
    // None is in flight if training was stopped.
    if (summary.steps < begun)
      if (absl::Status status = end(); !status.ok())
        return status;
    if (isSaving && summary.steps == begun)
      if (absl::Status status = save(); !status.ok())
        return status;
  }
  summary.progress = progress();
  if (summary.steps > beforeEpoch)
    if (absl::Status status = endEpoch(); !status.ok())
      return status;
  summary.seconds = since(start);
  if (int64_t done = summary.steps - summary.firstStep)
    summary.samplesPerSecond = done * batchSize / summary.seconds;
  summary.bubble = executor.pipelineBubble("train_step");
  summary.communicationShare = computing > 0 ? communication / computing : 0;
  return summary;
}

/// Checks that a training that goes on has its order of the data, and notes
/// that of one that begins.
static absl::Status checkStart(const Dataset &dataset, int64_t batchSize,
                               TrainOptions &options) {
  TrainProgress order = options.start;
  order.rows = dataset.rows;
  order.batchSize = batchSize;
  order.seed = options.seed;
  order.shuffle = options.shuffle;
  std::swap(options.start, order);
  if (order.steps == 0)
    return absl::OkStatus();
  auto differ = [&](absl::string_view what, auto before, auto now) {
    return absl::InvalidArgumentError(
        absl::StrCat("after step ", order.steps,
                     " the training cannot go on with the order "
                     "of the data that it had: ",
                     what, " was ", before, ", and is ", now));
  };
  const TrainProgress &now = options.start;
  if (order.rows != now.rows)
    return differ("the number of rows", order.rows, now.rows);
  if (order.batchSize != now.batchSize)
    return differ("the batch size", order.batchSize, now.batchSize);
  if (order.seed != now.seed)
    return differ("the seed", order.seed, now.seed);
  if (order.shuffle != now.shuffle)
    return differ("shuffling", order.shuffle ? "on" : "off",
                  now.shuffle ? "on" : "off");
  return absl::OkStatus();
}

/// Bytes of `rows` rows in memory.
static int64_t bytesOfRows(const Dataset &dataset, int64_t rows) {
  int64_t bytes = 0;
  for (const auto &[name, array] : dataset.arrays)
    if (dataset.whole.count(name) == 0)
      bytes += array.data.size() / dataset.rows * rows;
  return bytes;
}

absl::StatusOr<int64_t> shardc::rt::lastStepOf(const TrainOptions &options,
                                               const Dataset &dataset,
                                               int64_t batchSize) {
  absl::StatusOr<int64_t> stepsPerEpoch = batchesPerEpoch(dataset, batchSize);
  if (!stepsPerEpoch.ok())
    return stepsPerEpoch.status();
  if (options.epochs <= 0 && options.steps > 0)
    return options.steps;
  int64_t epochs = std::max<int64_t>(1, options.epochs);
  // If the product overflows there is no limit.
  int64_t byEpochs =
      epochs > INT64_MAX / *stepsPerEpoch ? INT64_MAX : epochs * *stepsPerEpoch;
  return options.steps == 0 ? byEpochs : std::min(options.steps, byEpochs);
}

absl::StatusOr<TrainSummary> shardc::rt::train(Executor &executor,
                                               const Dataset &dataset,
                                               const TrainOptions &options,
                                               std::ostream &out) {
  int64_t batchSize = executor.plan().batchSize();
  TrainOptions from = options;
  if (absl::Status status = checkStart(dataset, batchSize, from); !status.ok())
    return status;
  absl::StatusOr<int64_t> last = lastStepOf(options, dataset, batchSize);
  if (!last.ok())
    return last.status();
  BatchStreamOptions stream;
  stream.batchSize = batchSize;
  stream.seed = options.seed;
  stream.shuffle = options.shuffle;
  stream.begin = options.start.steps;
  stream.end = *last;
  // On CPUs a thread takes a worker's core, and longer to come and go than to
  // copy a small batch.
  constexpr int64_t small = 256 << 10;
  stream.ahead = executor.maxInFlight() > 1 || !dataset.inFile.empty() ||
                 bytesOfRows(dataset, batchSize) > small;
  stream.taken = options.wholeBatches ? RowsOfBatch() : rowsOf(executor);
  stream.trace = options.trace;
  absl::StatusOr<std::unique_ptr<BatchStream>> batches =
      BatchStream::create(dataset, std::move(stream));
  if (!batches.ok())
    return batches.status();
  std::string rows = absl::StrCat(dataset.name, ": ", dataset.rows, " rows");
  if (int64_t rest = dataset.rows % batchSize)
    absl::StrAppend(&rows, "; the last ", rest,
                    " of each epoch do not fill a batch and are dropped");
  printField("data", rows, out);
  return Training(executor, *std::move(batches), dataset.rows / batchSize,
                  *last, from, out)
      .run();
}
