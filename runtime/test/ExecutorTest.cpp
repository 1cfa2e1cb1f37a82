//===- ExecutorTest.cpp - Plans run the same on any workers ---------------===//

#include "TestPlan.h"

#include "exec/PreparedProgram.h"
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
  EXPECT_EQ(executor->allocatedBytesPerDevice(), executor->plan().arenaBytes());
}

INSTANTIATE_TEST_SUITE_P(Meshes, ExecutorTest,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 8),
                                          testing::Values(1, 2, 3)));

/// In-process collectives that move everything at the start, so that the wait
/// has nothing to do: what happens if one is not waited for, or not started,
/// shows.
class EagerCollectives : public Collectives {
public:
  class Prepared : public PreparedCollective {
  public:
    explicit Prepared(std::unique_ptr<PreparedCollective> inner)
        : inner(std::move(inner)) {}
    bool startsEarly() const override { return true; }
    absl::Status start() override {
      EXPECT_FALSE(isUnderWay.exchange(true));
      for (int64_t task = 0; task < inner->numTasks(); ++task)
        inner->runTask(task).IgnoreError();
      return absl::OkStatus();
    }
    int64_t numTasks() const override { return 1; }
    absl::Status runTask(int64_t) override {
      return isUnderWay.exchange(false)
                 ? absl::OkStatus()
                 : absl::InternalError("waited for before it was started");
    }

  private:
    std::unique_ptr<PreparedCollective> inner;
    std::atomic<bool> isUnderWay{false};
  };

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    auto prepared = inner->prepare(mesh, std::move(spec));
    if (!prepared.ok())
      return prepared.status();
    return std::make_unique<Prepared>(*std::move(prepared));
  }

private:
  std::unique_ptr<Collectives> inner = createInProcessCollectives();
};

/// All memory after runs of the train step over memory of small numbers.
std::vector<float> runOnArenas(const PlanSpec &plan, Collectives &collectives,
                               int threads, bool share) {
  auto kernels = KernelLibrary::load(plan);
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  auto layout = ArenaLayout::create(plan, share);
  EXPECT_TRUE(layout.ok()) << layout.status();
  std::vector<float> memory(layout->bytes() / 4);
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = float(i % 13);
  DeviceSet devices{
      plan, **kernels, *layout, reinterpret_cast<char *>(memory.data()), {}, 3};
  for (int64_t device = 0; device < plan.mesh.numDevices(); ++device)
    for (int64_t value : {device, /*seed=*/int64_t(0), /*run=*/int64_t(0)})
      devices.contexts.push_back(value);
  auto program = PreparedProgram::prepare(devices, 0, collectives, threads);
  EXPECT_TRUE(program.ok()) << program.status();
  WorkerPool pool(threads);
  PreparedProgram::Counters counters;
  for (int run = 0; run < 3; ++run)
    pool.run([&](int worker) { (*program)->run(worker, pool, counters); });
  EXPECT_TRUE((*program)->takeError().ok());
  return memory;
}

TEST(ExecutorTest, ABackendMayMoveDataFromTheStartOn) {
  for (int devices : {1, 3, 4})
    for (int threads : {1, 2, 3}) {
      auto plan = Plan::parse(makePlan(devices));
      ASSERT_TRUE(plan.ok()) << plan.status();
      auto inProcess = createInProcessCollectives();
      EagerCollectives eager;
      for (bool share : {false, true})
        EXPECT_EQ(runOnArenas((*plan)->spec(), *inProcess, threads, share),
                  runOnArenas((*plan)->spec(), eager, threads, share));
    }
}
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

TEST(ContextTest, RefusesSillyThreadCounts) {
  EXPECT_EQ(Context::create({-1}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Context::create({100000}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

} // namespace
