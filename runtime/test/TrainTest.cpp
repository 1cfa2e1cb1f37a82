//===- TrainTest.cpp - Training loop and evaluation -----------------------===//

#include "TestPlan.h"

#include "plan/PlanSpec.h"
#include "shardc-rt/Trainer.h"
#include "train/Format.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <sstream>

using namespace shardc::rt;

namespace {

/// Runs no plan: the loss of a batch is `lossOf` its x. Two runs can be in
/// flight.
class FakeExecutor : public Executor {
public:
  using Loss = std::function<double(absl::Span<const float>)>;

  explicit FakeExecutor(Loss lossOf) : lossOf(std::move(lossOf)) {
    absl::StatusOr<std::shared_ptr<const Plan>> parsed =
        Plan::parse(test::makePlan(1, test::addCopy));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    ownPlan = *parsed;
  }

  const Plan &plan() const override { return *ownPlan; }
  uint64_t allocatedBytesPerDevice() const override { return 0; }
  absl::Status initializeParameters() override { return absl::OkStatus(); }
  absl::Status setTensor(absl::string_view, ArrayView) override {
    return absl::OkStatus();
  }
  absl::StatusOr<HostArray> getTensor(absl::string_view) const override {
    return HostArray();
  }
  absl::Status submit(absl::string_view, const NamedArrays &inputs) override {
    const ArrayView &x = inputs.at("x");
    RunResult result;
    result.loss =
        lossOf({static_cast<const float *>(x.data), size_t(x.shape[0])});
    result.seconds = 1;
    running.push_back(std::move(result));
    ++runs;
    return absl::OkStatus();
  }
  absl::StatusOr<RunResult> await() override {
    RunResult result = std::move(running.front());
    running.pop_front();
    return result;
  }
  int inFlight() const override { return running.size(); }
  int maxInFlight() const override { return 2; }

  int runs = 0;

private:
  Loss lossOf;
  std::shared_ptr<const Plan> ownPlan;
  std::deque<RunResult> running;
};

double meanSquarePlusOne(absl::Span<const float> x) {
  double sum = 0;
  for (float value : x)
    sum += value * value;
  return sum / x.size() + 1;
}

Dataset makeData(int64_t rows) {
  Dataset dataset;
  dataset.name = "test.npz";
  dataset.rows = rows;
  HostArray x(DType::F32, {rows});
  for (int64_t row = 0; row < rows; ++row)
    x.values<float>()[row] = std::sin(float(row)) + 2;
  dataset.arrays.emplace("x", std::move(x));
  return dataset;
}

TEST(TrainTest, StopsInGoodOrder) {
  // In the middle of an epoch, at its end, and before anything.
  for (int wanted : {5, 4, 0}) {
    FakeExecutor executor(meanSquarePlusOne);
    Dataset dataset = makeData(48); // four steps an epoch
    TrainOptions options;
    options.steps = 100;
    int asked = 0, ended = 0;
    options.shouldStop = [&] { return asked++ == wanted; };
    options.onStep = [&](const StepRecord &record, const RunResult &) {
      EXPECT_EQ(record.step, ++ended);
      return absl::OkStatus();
    };
    std::ostringstream out;
    auto summary = train(executor, dataset, options, out);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_TRUE(summary->isStopped);
    EXPECT_EQ(summary->steps, wanted);
    EXPECT_EQ(ended, wanted);
    EXPECT_EQ(executor.runs, wanted);
    EXPECT_EQ(executor.inFlight(), 0);
    EXPECT_EQ(asked, wanted + 1);
    EXPECT_EQ(summary->epochs.size(), (wanted + 3) / 4u);
    EXPECT_TRUE(std::isfinite(summary->samplesPerSecond));
  }
}

TEST(TrainTest, IsSavedBetweenStepsAndGoesOn) {
  Dataset dataset = makeData(48); // four steps an epoch
  TrainOptions options;
  options.steps = 11;
  options.seed = 3;
  std::ostringstream out;
  std::vector<double> losses;
  std::vector<TrainProgress> saved;
  FakeExecutor executor(meanSquarePlusOne);
  options.onStep = [&](const StepRecord &, const RunResult &result) {
    losses.push_back(result.loss);
    return absl::OkStatus();
  };
  options.shouldSave = [](int64_t steps) { return steps % 3 == 0; };
  options.onSave = [&](const TrainProgress &progress) {
    EXPECT_EQ(executor.inFlight(), 0);
    EXPECT_EQ(progress.steps, int64_t(losses.size()));
    EXPECT_EQ(progress.finalLoss, losses.back());
    saved.push_back(progress);
    return absl::OkStatus();
  };
  auto whole = train(executor, dataset, options, out);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(saved.size(), 3u);
  saved.push_back(whole->progress);
  EXPECT_EQ(whole->progress.steps, 11);
  std::vector<double> wholeLosses = losses;
  for (const TrainProgress &from : saved) {
    EXPECT_EQ(from.epoch(), from.steps / 4 + 1);
    EXPECT_EQ(from.stepInEpoch(), from.steps % 4);
    losses.assign(wholeLosses.begin(), wholeLosses.begin() + from.steps);
    options.start = from;
    options.shouldSave = nullptr;
    options.onSave = nullptr;
    auto rest = train(executor, dataset, options, out);
    ASSERT_TRUE(rest.ok()) << rest.status();
    EXPECT_EQ(losses, wholeLosses);
    EXPECT_EQ(rest->steps, 11);
    EXPECT_EQ(rest->firstStep, from.steps);
    EXPECT_EQ(rest->firstLoss, whole->firstLoss);
    EXPECT_EQ(rest->finalLoss, whole->finalLoss);
    EXPECT_EQ(rest->progress.epochLossSum, whole->progress.epochLossSum);
    // The mean of an epoch is of all of its steps.
    if (from.steps < 11) {
      EXPECT_EQ(rest->epochs.back().meanLoss, whole->epochs.back().meanLoss);
      EXPECT_EQ(rest->epochs.back().steps, whole->epochs.back().steps);
    }
  }
  options.seed = 4;
  absl::Status status = train(executor, dataset, options, out).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "after step 11 the training cannot go on with the order of the "
            "data that it had: the seed was 3, and is 4");
}

TEST(TrainTest, NothingIsInFlightBetweenEpochs) {
  FakeExecutor executor(meanSquarePlusOne);
  Dataset dataset = makeData(48);
  TrainOptions options;
  options.steps = 10;
  std::vector<int64_t> steps;
  options.onEpoch = [&](const EpochSummary &epoch) {
    EXPECT_EQ(executor.inFlight(), 0);
    EXPECT_EQ(epoch.epoch, int64_t(steps.size()) + 1);
    steps.push_back(epoch.steps);
    return absl::OkStatus();
  };
  std::ostringstream out;
  auto summary = train(executor, dataset, options, out);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_FALSE(summary->isStopped);
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 4, 2}));
}

TEST(TrainTest, ManyEpochsAreNoFewSteps) {
  FakeExecutor executor(meanSquarePlusOne);
  Dataset dataset = makeData(48);
  TrainOptions options;
  options.epochs = INT64_MAX / 2;
  int asked = 0;
  options.shouldStop = [&] { return asked++ == 3; };
  std::ostringstream out;
  auto summary = train(executor, dataset, options, out);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->steps, 3);
}

TEST(TrainTest, TellsTimeLeft) {
  EXPECT_EQ(formatTimeLeft(0.4), "0 s");
  EXPECT_EQ(formatTimeLeft(59.4), "59 s");
  EXPECT_EQ(formatTimeLeft(59.6), "1 min 0 s");
  EXPECT_EQ(formatTimeLeft(3725), "1 h 2 min");
  EXPECT_EQ(formatTimeLeft(90000), "1 d 1 h");
  EXPECT_EQ(formatTimeLeft(1e300), "1000 d 0 h");
}

TEST(TrainTest, FieldsAreWrapped) {
  std::ostringstream out;
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "word" + std::to_string(i) + ", ";
  printField("memory", text, out);
  printField("data", std::string(100, 'x'), out);
  std::istringstream lines(out.str());
  std::string line, words;
  int count = 0;
  for (; std::getline(lines, line) && line[0] != 'd'; ++count) {
    EXPECT_LE(line.size(), 80u);
    EXPECT_EQ(line.substr(0, 15),
              count == 0 ? "memory         " : std::string(15, ' '));
    words += line.substr(15) + " ";
  }
  EXPECT_EQ(words, text);
  std::ostringstream numbers;
  printField("memory", std::string(60, 'x') + " 12.8 KiB (13056 B) more",
             numbers);
  EXPECT_EQ(numbers.str(), "memory         " + std::string(60, 'x') + "\n" +
                               std::string(15, ' ') +
                               "12.8 KiB (13056 B) more\n");
  EXPECT_EQ(count, 5);
  EXPECT_EQ(line, "data           " + std::string(100, 'x'));
}

TEST(EvaluateTest, AllRowsCount) {
  // Batches have twelve rows, and the loss is that of a batch.
  for (int64_t rows = 1; rows <= 40; ++rows) {
    FakeExecutor executor(meanSquarePlusOne);
    Dataset dataset = makeData(rows);
    auto evaluation = evaluate(executor, dataset);
    ASSERT_TRUE(evaluation.ok()) << evaluation.status();
    EXPECT_EQ(evaluation->rows, rows);
    EXPECT_NEAR(evaluation->loss,
                meanSquarePlusOne(dataset.arrays["x"].values<float>()), 1e-12)
        << rows;
    EXPECT_LE(executor.runs, 3 + 2 * 5);
  }
}

TEST(EvaluateTest, RefusesRowsThatHaveNoLossOfTheirOwn) {
  FakeExecutor executor([](absl::Span<const float> x) {
    return std::sqrt(meanSquarePlusOne(x));
  });
  EXPECT_TRUE(evaluate(executor, makeData(24)).ok());
  EXPECT_TRUE(checkEvaluation(executor, makeData(24)).ok());
  EXPECT_EQ(checkEvaluation(executor, makeData(31)).code(),
            absl::StatusCode::kInvalidArgument);
  absl::Status status = evaluate(executor, makeData(31)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("expected a multiple of the batch size"),
            std::string::npos)
      << status;
  EXPECT_EQ(evaluate(executor, makeData(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(EvaluateTest, CanBeStopped) {
  FakeExecutor executor(meanSquarePlusOne);
  int asked = 0;
  auto stop = [&] { return asked++ == 2; };
  EXPECT_TRUE(
      absl::IsCancelled(evaluate(executor, makeData(48), stop).status()));
  EXPECT_EQ(executor.runs, 2);
}

/// Predicts x + 100 in bf16, for batches of four rows.
class PredictingExecutor : public FakeExecutor {
public:
  PredictingExecutor() : FakeExecutor([](auto) { return 0; }) {
    PlanSpec spec;
    spec.batchSize = 4;
    ProgramSpec program = {};
    program.name = "predict";
    program.buffers = {{0, 8, DType::BF16, {4}}};
    program.results = {{"prediction", 0, {4}, {}}};
    spec.programs.push_back(program);
    predicting = makeUnverifiedPlan(std::move(spec));
  }

  const Plan &plan() const override { return *predicting; }
  absl::Status submit(absl::string_view program,
                      const NamedArrays &inputs) override {
    EXPECT_EQ(program, "predict");
    const ArrayView &x = inputs.at("x");
    EXPECT_EQ(x.shape[0], 4);
    prediction = HostArray(DType::BF16, {4});
    for (int row = 0; row < 4; ++row) {
      // Exact for whole numbers up to 255.
      float value = static_cast<const float *>(x.data)[row] + 100;
      uint32_t bits;
      std::memcpy(&bits, &value, sizeof(bits));
      prediction.values<uint16_t>()[row] = bits >> 16;
    }
    ++runs;
    return absl::OkStatus();
  }
  absl::StatusOr<RunResult> await() override {
    RunResult result;
    result.add("prediction", prediction);
    return result;
  }
  int inFlight() const override { return 0; }

private:
  HostArray prediction;
  std::shared_ptr<const Plan> predicting;
};

TEST(PredictTest, GivesARowForEachOne) {
  for (int64_t rows = 1; rows <= 13; ++rows) {
    PredictingExecutor executor;
    Dataset dataset = makeData(rows);
    for (int64_t row = 0; row < rows; ++row)
      dataset.arrays["x"].values<float>()[row] = row;
    auto predictions = predict(executor, dataset);
    ASSERT_TRUE(predictions.ok()) << predictions.status();
    EXPECT_EQ(predictions->dtype, DType::F32);
    EXPECT_EQ(predictions->shape, std::vector<int64_t>{rows});
    for (int64_t row = 0; row < rows; ++row)
      EXPECT_EQ(predictions->values<float>()[row], row + 100);
    EXPECT_EQ(executor.runs, (rows + 3) / 4);
  }
}

TEST(PredictTest, SaysWhyNot) {
  PredictingExecutor executor;
  int asked = 0;
  auto stop = [&] { return asked++ == 2; };
  EXPECT_TRUE(
      absl::IsCancelled(predict(executor, makeData(48), stop).status()));
  EXPECT_EQ(executor.runs, 2);
  absl::Status empty = predict(executor, makeData(0)).status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(empty.message()),
            "test.npz has no rows to predict for");
  FakeExecutor without(meanSquarePlusOne);
  absl::Status none = predict(without, makeData(4)).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(none.message()), "the plan has no program \"predict\"");
}

} // namespace
