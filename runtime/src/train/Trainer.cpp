//===- Trainer.cpp - The training loop ------------------------------------===//

#include "shardc-rt/Trainer.h"

#include "base/Convert.h"
#include "data/Batches.h"
#include "data/Npz.h"
#include "train/Format.h"
#include "train/StepLog.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <chrono>
#include <cmath>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

static double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static absl::Status submit(Executor &executor, const Batch &batch,
                           const TrainOptions &options) {
  if (options.onBatch)
    if (absl::Status status = options.onBatch(batch); !status.ok())
      return status;
  return executor.submit("train_step", batch.views());
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
  int64_t stepsPerEpoch = (*batches)->batchesPerEpoch();
  if (dataset.rows % batchSize != 0)
    out << "data           " << dataset.name << ": " << dataset.rows
        << " rows; the last " << dataset.rows % batchSize
        << " of each epoch do not fill a batch and are dropped\n";
  else
    out << "data           " << dataset.name << ": " << dataset.rows
        << " rows\n";

  int64_t steps = options.steps;
  if (options.epochs > 0 || options.steps == 0) {
    int64_t byEpochs = std::max<int64_t>(1, options.epochs) * stepsPerEpoch;
    steps = steps == 0 ? byEpochs : std::min(steps, byEpochs);
  }

  StepLog log(options, out);
  if (absl::Status status = log.open(); !status.ok())
    return status;
  TrainSummary summary;
  double communication = 0, computing = 0, lossSum = 0;
  Clock::time_point begin = Clock::now(), epochBegin = begin, last = begin;
  int64_t submitted = 0;
  for (int64_t step = 0; step < steps; ++step) {
    for (; submitted < steps && executor.inFlight() < executor.maxInFlight();
         ++submitted)
      if (absl::Status status = submit(executor, (*batches)->next(), options);
          !status.ok())
        return status;
    absl::StatusOr<RunResult> result = executor.await();
    if (!result.ok())
      return result.status();
    Clock::time_point now = Clock::now();
    StepRecord record;
    record.step = step + 1;
    record.epoch = step / stepsPerEpoch + 1;
    record.stepInEpoch = step % stepsPerEpoch + 1;
    record.stepsPerEpoch = stepsPerEpoch;
    record.loss = result->loss;
    record.seconds = result->seconds;
    record.samplesPerSecond =
        batchSize / std::chrono::duration<double>(now - last).count();
    record.communicationShare = result->communicationSeconds / result->seconds;
    record.wireBytes = result->wireBytes;
    last = now;
    if (absl::Status status = log.add(record); !status.ok())
      return status;
    if (!std::isfinite(result->loss)) {
      log.endEpoch();
      return absl::OutOfRangeError(
          absl::StrCat("the loss is ", result->loss, " at step ", step + 1,
                       " (epoch ", record.epoch, "); training stops"));
    }
    communication += result->communicationSeconds;
    computing += result->seconds;
    lossSum += result->loss;
    summary.wireBytesPerStep = result->wireBytes;
    if (step == 0)
      summary.firstLoss = result->loss;
    summary.finalLoss = result->loss;
    ++summary.steps;
    if (options.onStep)
      if (absl::Status status = options.onStep(*result); !status.ok())
        return status;

    if (record.stepInEpoch == stepsPerEpoch || step + 1 == steps) {
      EpochSummary epoch{lossSum / record.stepInEpoch, since(epochBegin)};
      log.endEpoch();
      out << absl::StrFormat("epoch %d  loss %.6g  %s  %.0f samples/s\n",
                             record.epoch, epoch.meanLoss,
                             formatSeconds(epoch.seconds),
                             record.stepInEpoch * batchSize / epoch.seconds);
      summary.epochs.push_back(epoch);
      lossSum = 0;
      epochBegin = Clock::now();
    }
  }
  summary.seconds = since(begin);
  summary.samplesPerSecond = summary.steps * batchSize / summary.seconds;
  summary.communicationShare = computing > 0 ? communication / computing : 0;
  if (absl::Status status = log.close(); !status.ok())
    return status;
  return summary;
}

absl::StatusOr<Evaluation> shardc::rt::evaluate(Executor &executor,
                                                const Dataset &dataset) {
  const Plan &plan = executor.plan();
  const ProgramInfo *program = plan.findProgram("evaluate");
  if (!program)
    return absl::NotFoundError("the plan has no evaluation program");
  bool perExample = false, countsCorrect = false;
  for (const ResultInfo &result : program->results) {
    perExample |= result.name == "per_example_loss";
    countsCorrect |= result.name == "correct";
  }
  int64_t batchSize = plan.batchSize();
  // Without a loss per row, rows that pad a batch could not be told apart.
  int64_t rows =
      perExample ? dataset.rows : dataset.rows / batchSize * batchSize;
  if (batchSize < 1 || rows < 1)
    return absl::InvalidArgumentError(absl::StrCat(
        dataset.name, " has ", dataset.rows, " rows, too few to evaluate on"));
  std::vector<int64_t> order(rows);
  for (int64_t row = 0; row < rows; ++row)
    order[row] = row;
  Evaluation evaluation;
  evaluation.rows = rows;
  evaluation.correct = countsCorrect ? 0 : -1;
  double lossSum = 0;
  for (int64_t begin = 0; begin < rows; begin += batchSize) {
    Batch batch = gatherBatch(dataset, order, begin, batchSize);
    absl::StatusOr<RunResult> result = executor.run("evaluate", batch.views());
    if (!result.ok())
      return result.status();
    absl::StatusOr<HostArray> losses = HostArray();
    if (perExample)
      losses = convert(*result->find("per_example_loss"), DType::F64);
    else
      lossSum += result->loss * batchSize;
    if (!losses.ok())
      return losses.status();
    for (int64_t row = 0; row < batch.validRows; ++row) {
      if (perExample)
        lossSum += losses->values<double>()[row];
      if (countsCorrect)
        evaluation.correct += result->find("correct")->values<int32_t>()[row];
    }
  }
  evaluation.loss = lossSum / rows;
  return evaluation;
}

absl::Status shardc::rt::loadParameters(Executor &executor,
                                        const std::string &path) {
  absl::StatusOr<ArrayMap> arrays = readNpz(path);
  if (!arrays.ok())
    return arrays.status();
  for (const auto &[name, array] : *arrays) {
    const TensorInfo *tensor = executor.plan().findTensor(name);
    if (!tensor || tensor->role != Role::Parameter)
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the model has no parameter \"", name, "\""));
  }
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    if (tensor.role != Role::Parameter)
      continue;
    auto found = arrays->find(tensor.name);
    if (found == arrays->end())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": parameter \"", tensor.name, "\" is missing; ",
                       describe(tensor.dtype, tensor.shape), " expected"));
    absl::StatusOr<HostArray> array = found->second;
    if (isFloat(array->dtype) && isFloat(tensor.dtype))
      array = convert(found->second, tensor.dtype);
    if (!array.ok())
      return absl::InvalidArgumentError(absl::StrCat(path, ": parameter \"",
                                                     tensor.name, "\", ",
                                                     array.status().message()));
    if (absl::Status status = executor.setTensor(tensor.name, array->view());
        !status.ok())
      return absl::Status(status.code(),
                          absl::StrCat(path, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ArrayMap> shardc::rt::readParameters(const Executor &executor) {
  ArrayMap arrays;
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    if (tensor.role != Role::Parameter)
      continue;
    absl::StatusOr<HostArray> array = executor.getTensor(tensor.name);
    // NumPy has no bf16; f32 holds it exactly.
    if (array.ok() && array->dtype == DType::BF16)
      array = convert(*array, DType::F32);
    if (!array.ok())
      return array.status();
    arrays.emplace(tensor.name, *std::move(array));
  }
  return arrays;
}

absl::Status shardc::rt::saveParameters(const Executor &executor,
                                        const std::string &path) {
  absl::StatusOr<ArrayMap> arrays = readParameters(executor);
  return arrays.ok() ? writeNpz(path, *arrays) : arrays.status();
}
