//===- ExecutorTest.cpp - Plans run the same on any workers
//----------------===//

#include "TestPlan.h"

#include "exec/WorkerPool.h"
#include "shardc-rt/Executor.h"

#include <atomic>
#include <cmath>
#include <gtest/gtest.h>

using namespace shardc::rt;
using test::makePlan;

namespace {

HostArray makeInput() {
  HostArray x(DType::F32, {12});
  for (int i = 0; i < 12; ++i)
    x.values<float>()[i] = float(i);
  return x;
}

std::unique_ptr<Executor>
makeExecutor(Context &context, const std::string &bytes, bool poison = false) {
  auto plan = Plan::parse(bytes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  ExecutorOptions options;
  options.seed = 3;
  options.poisonPadding = poison;
  auto executor = Executor::create(context, *plan, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  EXPECT_TRUE((*executor)->initializeParameters().ok());
  return *std::move(executor);
}

class ExecutorTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(ExecutorTest, ComputesWhatThePlanSays) {
  auto [devices, threads] = GetParam();
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  auto executor = makeExecutor(**context, makePlan(devices), /*poison=*/true);
  HostArray before = *executor->getTensor("w");
  HostArray weights = *executor->getTensor("m");
  HostArray x = makeInput();
  for (int step = 0; step < 3; ++step) {
    auto result = executor->step({{"x", x.view()}});
    ASSERT_TRUE(result.ok()) << result.status();
    int64_t shard = (12 + devices - 1) / devices;
    const HostArray &y = *result->find("y"), &h = *result->find("h");
    float expectedH[4] = {};
    for (int i = 0; i < 12; ++i) {
      float expected = 2.0f * i + float(i / shard);
      ASSERT_EQ(y.values<float>()[i], expected);
      for (int j = 0; j < 4; ++j)
        expectedH[j] += devices * expected * weights.values<float>()[4 * i + j];
    }
    for (int j = 0; j < 4; ++j)
      EXPECT_NEAR(h.values<float>()[j], expectedH[j],
                  1e-5 * std::fabs(expectedH[j]));
    EXPECT_EQ(result->loss, before.values<float>()[0]);
    HostArray after = *executor->getTensor("w");
    for (int j = 0; j < 4; ++j)
      EXPECT_EQ(after.values<float>()[j],
                before.values<float>()[j] - 0.5f * h.values<float>()[j]);
    before = after;
    // all_gather (n-1)/n·S and all_reduce 2(n-1)/n·S, S padded for the former.
    uint64_t n = devices, padded = 4 * n * shard;
    uint64_t expectedBytes =
        ((n - 1) * padded + n - 1) / n + (2 * (n - 1) * 48 + n - 1) / n;
    EXPECT_EQ(result->wireBytes, devices == 1 ? 0 : expectedBytes);
  }
  EXPECT_EQ(executor->allocatedBytesPerDevice(), executor->plan().arenaBytes);
}

INSTANTIATE_TEST_SUITE_P(Meshes, ExecutorTest,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 8),
                                          testing::Values(1, 2, 3)));

class LoopTest : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(LoopTest, MovesBuffersAndAccumulates) {
  auto [devices, threads] = GetParam();
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  auto executor =
      makeExecutor(**context, makePlan(devices, test::addLoops), true);
  HostArray weights = *executor->getTensor("m");
  HostArray x = makeInput();
  int64_t shard = 12 / devices;
  for (int step = 0; step < 2; ++step) {
    auto result = executor->step({{"x", x.view()}});
    ASSERT_TRUE(result.ok()) << result.status();
    float expectedH[4] = {};
    for (int i = 0; i < 12; ++i) {
      float run = float(i % shard / (shard / 3));
      float expected = 2.0f * i + float(i / shard) + 100.0f * run;
      ASSERT_EQ(result->find("y")->values<float>()[i], expected);
      for (int j = 0; j < 4; ++j)
        expectedH[j] +=
            2 * devices * expected * weights.values<float>()[4 * i + j];
    }
    for (int j = 0; j < 4; ++j)
      EXPECT_NEAR(result->find("h")->values<float>()[j], expectedH[j],
                  1e-5 * std::fabs(expectedH[j]));
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, LoopTest,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(1, 2, 3)));

TEST(ExecutorTest, RefusesWrongInputs) {
  auto context = Context::create({1});
  auto executor = makeExecutor(**context, makePlan(2));
  HostArray x = makeInput(), wrongShape(DType::F32, {11}),
            wrongType(DType::I32, {12});
  auto code = [&](const NamedArrays &inputs) {
    return executor->step(inputs).status().code();
  };
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"x", wrongShape.view()}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"x", wrongType.view()}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({{"x", x.view()}, {"z", x.view()}}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(executor->run("nothing", {}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(executor->setTensor("nothing", x.view()).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(executor->setTensor("w", x.view()).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(executor->getTensor("nothing").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ExecutorTest, TensorsComeBackAsSet) {
  auto context = Context::create({2});
  auto executor = makeExecutor(**context, makePlan(5), /*poison=*/true);
  HostArray x = makeInput();
  ASSERT_TRUE(executor->setTensor("x", x.view()).ok());
  EXPECT_EQ(executor->getTensor("x")->data, x.data);
}

TEST(ExecutorTest, MachineCodeThatDoesNotLoadIsAnError) {
  auto context = Context::create({1});
  for (auto edit : {+[](fb::PlanT &p) { p.kernels[0] = "missing"; },
                    +[](fb::PlanT &p) { p.code.assign(100, 'x'); }}) {
    auto plan = Plan::parse(makePlan(2, edit));
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(Executor::create(**context, *plan).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST(ExecutorTest, TwoContextsAndTwoPlansLiveSideBySide) {
  auto first = Context::create({1}), second = Context::create({2});
  auto a = makeExecutor(**first, makePlan(2));
  auto b = makeExecutor(**second, makePlan(4));
  HostArray x = makeInput();
  EXPECT_TRUE(a->step({{"x", x.view()}}).ok());
  EXPECT_TRUE(b->step({{"x", x.view()}}).ok());
  EXPECT_EQ(a->getTensor("m")->data, b->getTensor("m")->data);
}

TEST(WorkerPoolTest, EveryWorkerRunsEveryJobOnce) {
  for (int workers : {1, 2, 3, 5}) {
    WorkerPool pool(workers);
    std::vector<std::atomic<int>> counts(workers);
    std::atomic<int> sum{0};
    for (int job = 0; job < 200; ++job)
      pool.run([&](int worker) {
        ++counts[worker];
        sum.fetch_add(1);
        pool.barrier();
        // All have added before any goes on.
        EXPECT_EQ(sum.load() % workers, 0);
        pool.barrier();
      });
    for (std::atomic<int> &count : counts)
      EXPECT_EQ(count.load(), 200);
  }
}

TEST(ContextTest, RefusesSillyThreadCounts) {
  EXPECT_EQ(Context::create({-1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Context::create({100000}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

} // namespace
