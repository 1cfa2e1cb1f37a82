//===- PipelineTest.cpp - Pipelines compute what their programs say -------===//

#include "TestPlan.h"

#include "exec/CpuExecutor.h"
#include "plan/PlanSpec.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace shardc::rt;
using test::makePipelinePlan;

namespace {

/// The model of the plan, step by step. All values are exact.
struct Model {
  explicit Model(int ranks) : gradients(ranks) {
    for (int rank = 0; rank < ranks; ++rank)
      w.push_back(rank + 1);
  }

  void run(int microbatches, const HostArray &x);
  void update();

  std::vector<float> w, gradients;
  float loss = 0;
};

void Model::run(int microbatches, const HostArray &x) {
  size_t ranks = w.size();
  gradients.assign(ranks, 0);
  loss = 0;
  for (int device = 0; device < 2; ++device)
    for (int m = 0; m < microbatches; ++m)
      for (int row = 0; row < 2; ++row) {
        std::vector<float> h = {
            x.values<float>()[16 * (microbatches * device + m) + row]};
        for (size_t rank = 0; rank < ranks; ++rank)
          h.push_back(h[rank] * w[rank] + 10 * rank + m);
        loss += h[ranks];
        float g = 1;
        for (size_t rank = ranks; rank-- > 0; g *= w[rank])
          gradients[rank] += g * h[rank];
      }
}

void Model::update() {
  float sum = 0;
  for (float gradient : gradients)
    sum += gradient;
  for (size_t rank = 0; rank < w.size(); ++rank)
    w[rank] -= gradients[rank] / 1024 + sum / 4096;
}

/// NaN in rows that the plan does not use.
HostArray makeInput(int microbatches) {
  HostArray x(DType::F32, {32 * microbatches});
  for (int i = 0; i < 32 * microbatches; ++i)
    x.values<float>()[i] = i % 16 < 2 ? float(i / 16 % 3 + i % 16) : NAN;
  return x;
}

std::unique_ptr<Executor> makeExecutor(Context &context, int ranks,
                                       int microbatches,
                                       ExecutorOptions options) {
  auto plan = Plan::parse(makePipelinePlan(ranks, microbatches));
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto executor = Executor::create(context, *plan, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE((*executor)->initializeParameters().ok());
  return *std::move(executor);
}

float get(const Executor &executor, const std::string &name) {
  auto array = executor.getTensor(name);
  EXPECT_TRUE(array.ok()) << array.status();
  return array.ok() ? array->values<float>()[0] : NAN;
}

/// What a device of the rank that sends most sends in a step.
uint64_t wireBytes(int ranks, int microbatches) {
  uint64_t most = 0, n = 2 * ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    uint64_t sends = (rank > 0) + (rank < ranks - 1);
    uint64_t reduced = 4 + (2 * (n - 1) * 4 + n - 1) / n;
    if (rank == ranks - 1)
      reduced += 4;
    most = std::max(most, 8 * microbatches * sends + reduced);
  }
  return most;
}

/// Ranks, microbatches, threads, and whether replicas share memory.
class PipelineTest
    : public testing::TestWithParam<std::tuple<int, int, int, bool>> {};

TEST_P(PipelineTest, ComputesWhatThePlanSays) {
  auto [ranks, microbatches, threads, share] = GetParam();
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  ExecutorOptions options;
  options.poisonPadding = true;
  options.shareReplicas = share;
  auto executor = makeExecutor(**context, ranks, microbatches, options);
  HostArray x = makeInput(microbatches);
  for (int step = 1; step <= 3; ++step) {
    Model model(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      HostArray value(DType::F32, {});
      value.values<float>()[0] = model.w[rank];
      ASSERT_TRUE(
          executor->setTensor("w" + std::to_string(rank), value.view()).ok());
    }
    model.run(microbatches, x);
    auto evaluated = executor->run("evaluate", {{"x", x.view()}});
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_EQ(evaluated->loss, model.loss);
    auto result = executor->step({{"x", x.view()}});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->loss, model.loss);
    EXPECT_EQ(result->results.size(), 1u);
    EXPECT_EQ(result->wireBytes, wireBytes(ranks, microbatches));
    model.update();
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(get(*executor, "w" + std::to_string(rank)), model.w[rank]);
    EXPECT_EQ(get(*executor, "t"), step);
  }
  // All values differ over data and none over copy.
  uint64_t arenas = 0;
  for (const PlanSpec &rank : executor->plan().spec().ranks())
    arenas += rank.arenaBytes;
  for (int rank = 0; rank < ranks; ++rank)
    arenas -= 64 * rank; // unused
  if (share)
    EXPECT_LE(executor->allocatedBytes(), 2 * arenas);
  else
    EXPECT_EQ(executor->allocatedBytes(), 4 * arenas);
}

INSTANTIATE_TEST_SUITE_P(All, PipelineTest,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(1, 2, 5),
                                          testing::Values(1, 2, 3),
                                          testing::Bool()));

TEST(PipelineExecutorTest, BitsDoNotDependOnThreads) {
  std::vector<float> expected;
  for (int threads : {1, 2, 3, 4, 7}) {
    auto context = Context::create({threads});
    ASSERT_TRUE(context.ok());
    auto executor = makeExecutor(**context, 3, 4, {});
    HostArray x = makeInput(4);
    std::vector<float> values;
    for (int step = 0; step < 5; ++step) {
      auto result = executor->step({{"x", x.view()}});
      ASSERT_TRUE(result.ok()) << result.status();
      values.push_back(float(result->loss));
      for (const char *name : {"w0", "w1", "w2"})
        values.push_back(get(*executor, name));
    }
    if (expected.empty())
      expected = values;
    EXPECT_EQ(values, expected) << threads;
  }
}

/// A sum over ranks differs along an axis along which the operand of any rank
/// differs, also where a rank has an operand that does not.
TEST(PipelineExecutorTest, SumsOverRanksDifferAsTheirOperandsDo) {
  auto context = Context::create({2});
  ASSERT_TRUE(context.ok());
  std::string bytes = makePipelinePlan(3, 2, [](fb::PlanT &plan) {
    for (int rank = 0; rank < 3; ++rank) {
      uint32_t counter = 0;
      for (auto &command : plan.programs[rank]->commands)
        if (auto *launch = command->operation.AsLaunch();
            launch && launch->buffers.size() > 3)
          counter = launch->buffers[3];
      for (auto &command : plan.programs[rank]->commands)
        if (auto *start = command->operation.AsCollectiveStart())
          if (start->axes.size() == 2) {
            start->axes = {0};
            // The step counter, which is the same on all devices.
            if (rank > 0)
              start->items[0]->in = counter;
          }
    }
  });
  auto plan = Plan::parse(bytes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  HostArray x = makeInput(2);
  std::vector<double> losses;
  for (bool share : {false, true}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    auto executor = Executor::create(**context, *plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    // Then the parameters differ, too, and with them the next losses.
    ASSERT_TRUE((*executor)->step({{"x", x.view()}}).ok());
    auto second = (*executor)->step({{"x", x.view()}});
    ASSERT_TRUE(second.ok()) << second.status();
    losses.push_back(second->loss);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

/// A command may write the rows of one microbatch while it reads those of
/// another: copies of the batch lie side by side, and must not mix.
TEST(PipelineExecutorTest, PartsOfABatchMayBeOverwritten) {
  auto context = Context::create({2});
  ASSERT_TRUE(context.ok());
  auto plan = Plan::parse(makePipelinePlan(2, 2, [](fb::PlanT &plan) {
    std::vector<fb::LaunchT *> launches;
    for (auto &command : plan.programs[2]->commands)
      if (auto *launch = command->operation.AsLaunch())
        launches.push_back(launch);
    launches[0]->buffers[2] = launches[1]->buffers[0];
  }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (bool share : {false, true}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    auto executor = Executor::create(**context, *plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    HostArray w(DType::F32, {});
    w.values<float>()[0] = 2;
    ASSERT_TRUE((*executor)->setTensor("w0", w.view()).ok());
    HostArray x(DType::F32, {64});
    for (int i = 0; i < 64; ++i)
      x.values<float>()[i] = float(i + 1);
    ASSERT_TRUE((*executor)->run("evaluate", {{"x", x.view()}}).ok());
    auto after = (*executor)->getTensor("x");
    ASSERT_TRUE(after.ok()) << after.status();
    for (int row : {16, 17, 48, 49})
      x.values<float>()[row] = 2 * x.values<float>()[row - 16];
    EXPECT_EQ(after->data, x.data);
  }
}

TEST(PipelineExecutorTest, ReplaysItsTasks) {
  auto context = Context::create({2});
  ASSERT_TRUE(context.ok());
  auto executor = makeExecutor(**context, 3, 4, {});
  HostArray x = makeInput(4);
  EXPECT_FALSE(executor->pipelineBubble("train_step"));
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(executor->step({{"x", x.view()}}).ok());
    auto bubble = executor->pipelineBubble("train_step");
    ASSERT_TRUE(bubble);
    EXPECT_EQ(bubble->predictedSeconds, (4 + 3 - 1) * 3);
    EXPECT_NEAR(bubble->predicted, 1 - 4. / 6, 1e-12);
    EXPECT_GT(bubble->measuredSeconds, 0);
    // At any time a task runs or a message crosses, however long that takes.
    EXPECT_GE(bubble->measured, 0);
    EXPECT_LT(bubble->measured, 1);
  }
  EXPECT_FALSE(executor->pipelineBubble("evaluate"));
  EXPECT_FALSE(executor->pipelineBubble("nothing"));
  auto plain = Executor::create(**context, *Plan::parse(test::makePlan(2)));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE((*plain)->pipelineBubble("train_step"));
}

TEST(PipelineExecutorTest, InitialValuesDoNotDependOnTheCut) {
  auto context = Context::create({2});
  ASSERT_TRUE(context.ok());
  auto two = makeExecutor(**context, 2, 1, {});
  auto four = makeExecutor(**context, 4, 1, {});
  for (const char *name : {"w0", "w1"})
    EXPECT_EQ(get(*two, name), get(*four, name));
  EXPECT_EQ(two->step({}).status().code(), absl::StatusCode::kInvalidArgument);
}

} // namespace
