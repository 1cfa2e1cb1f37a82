//===- ExecutorTest.cpp - Plans run the same on any workers ---------------===//

#include "TestPlan.h"

#include "exec/CpuExecutor.h"

#include <atomic>
#include <cmath>
#include <ctime>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>

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

TEST(ExecutorRunTest, KnowsTheKernelThatDoesNotEnd) {
  auto context = Context::create({2});
  ASSERT_TRUE(context.ok());
  auto executor = makeExecutor(**context, makePlan(2, [](fb::PlanT &plan) {
    plan.kernels[0] = "test_slow";
    plan.programs[0]->commands[0]->source = "model.mlir:7:3";
  }));
  EXPECT_EQ(executor->describeRun(), "");
  HostArray x(DType::F32, {12});
  for (float &value : x.values<float>())
    value = 100;
  // Where this thread gets no time during a run, there is another one.
  std::atomic<bool> isSeen{false};
  std::thread runs([&] {
    while (!isSeen)
      ASSERT_TRUE(executor->step({{"x", x.view()}}).ok());
  });
  std::string text;
  while (text != "test_slow (forward, model.mlir:7:3)")
    text = executor->describeRun();
  isSeen = true;
  runs.join();
  EXPECT_EQ(executor->describeRun(), "");
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
      int row = i / shard;
      float expected = 2.0f * i + row;
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

/// The processor time that the parameters of `devices` devices take, in
/// seconds: one, of which every device has one element.
double initializationSeconds(int devices) {
  auto plan = Plan::parse(makePlan(devices, [&](fb::PlanT &plan) {
    fb::TensorT &w = *plan.tensors[0];
    w.shape = {devices};
    w.sharding->dims[0]->axes = {0};
    w.bytes = 4;
    plan.tensors.resize(1);
    fb::ProgramT &step = *plan.programs[0];
    step.buffers.clear();
    step.commands.clear();
    step.results.clear();
  }));
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create({1});
  EXPECT_TRUE(context.ok());
  auto executor = Executor::create(**context, *plan, {});
  EXPECT_TRUE(executor.ok()) << executor.status();
  double least = 1e9;
  for (int run = 0; run < 3; ++run) {
    std::clock_t start = std::clock();
    EXPECT_TRUE((*executor)->initializeParameters().ok());
    least = std::min(least, double(std::clock() - start) / CLOCKS_PER_SEC);
  }
  HostArray w = *(*executor)->getTensor("w");
  std::set<float> values(w.values<float>().begin(), w.values<float>().end());
  EXPECT_GT(values.size(), devices * 0.9) << "expected random values";
  return least;
}

// The time is in proportion to the devices: 8 times as many took 64 times as
// long.
TEST(InitializationTimeTest, IsNotQuadraticInDevices) {
  EXPECT_LT(initializationSeconds(1 << 15),
            24 * initializationSeconds(1 << 12));
}

/// In-process collectives that count the runs of each task, and fail if told.
class WatchedCollectives : public Collectives {
public:
  struct Watch {
    std::atomic<bool> fails{false};
    std::mutex mutex;
    std::map<std::pair<PreparedCollective *, int64_t>, int64_t> runs;
  };

  class Prepared : public PreparedCollective {
  public:
    Prepared(std::unique_ptr<PreparedCollective> inner, Watch &watch)
        : inner(std::move(inner)), watch(watch) {}
    int64_t numTasks() const override { return inner->numTasks(); }
    absl::Status runTask(int64_t task) override {
      {
        std::lock_guard<std::mutex> lock(watch.mutex);
        ++watch.runs[{this, task}];
      }
      return watch.fails ? absl::InternalError("the link is down")
                         : inner->runTask(task);
    }

  private:
    std::unique_ptr<PreparedCollective> inner;
    Watch &watch;
  };

  explicit WatchedCollectives(Watch &watch) : watch(watch) {}

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    auto prepared = inner->prepare(mesh, std::move(spec));
    if (!prepared.ok())
      return prepared.status();
    return std::make_unique<Prepared>(*std::move(prepared), watch);
  }

private:
  std::unique_ptr<Collectives> inner = createInProcessCollectives();
  Watch &watch;
};

/// An executor whose parameters have no values yet.
std::unique_ptr<Executor> makeWatched(Context &context,
                                      const std::string &bytes,
                                      WatchedCollectives::Watch &watch) {
  auto plan = Plan::parse(bytes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  auto executor =
      createCpuExecutor(context, *plan, ExecutorOptions(), nullptr,
                        std::make_unique<WatchedCollectives>(watch));
  EXPECT_TRUE(executor.ok()) << executor.status();
  return *std::move(executor);
}

TEST(ExecutorTest, RunsEveryTaskOfACollectiveOncePerStep) {
  HostArray x = makeInput();
  for (int devices : {1, 3, 4})
    for (int threads : {1, 2, 3}) {
      auto context = Context::create({threads});
      WatchedCollectives::Watch watch;
      auto executor = makeWatched(**context, makePlan(devices), watch);
      ASSERT_TRUE(executor->initializeParameters().ok());
      for (int step = 0; step < 2; ++step)
        ASSERT_TRUE(executor->step({{"x", x.view()}}).ok());
      EXPECT_FALSE(watch.runs.empty());
      for (const auto &[task, runs] : watch.runs)
        EXPECT_EQ(runs, 2) << "task " << task.second;
    }
}

TEST(ParameterStateTest, NothingRunsWithoutValues) {
  auto context = Context::create({2});
  WatchedCollectives::Watch watch;
  auto executor = makeWatched(**context, makePlan(2), watch);
  HostArray x = makeInput();
  absl::Status status = executor->step({{"x", x.view()}}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "parameter \"w\" has no value: initialize the parameters, or set "
            "all parameters and states");
  EXPECT_EQ(executor->getTensor("w").status(), status);
  EXPECT_TRUE(watch.runs.empty());
  // Setting all of them, one by one, has the effect of initializing.
  for (const TensorInfo &tensor : executor->plan().tensors())
    if (tensor.role == Role::Parameter || tensor.role == Role::State) {
      EXPECT_FALSE(executor->step({{"x", x.view()}}).ok());
      HostArray values(tensor.dtype, tensor.shape);
      ASSERT_TRUE(executor->setTensor(tensor.name, values.view()).ok());
    }
  EXPECT_TRUE(executor->step({{"x", x.view()}}).ok());
}

TEST(ParameterStateTest, AStepThatFailsMidwayLosesTheValues) {
  auto context = Context::create({2});
  WatchedCollectives::Watch watch;
  auto executor = makeWatched(**context, makePlan(2), watch);
  HostArray x = makeInput();
  NamedArrays inputs = {{"x", x.view()}};
  ASSERT_TRUE(executor->initializeParameters().ok());
  auto first = executor->step(inputs);
  ASSERT_TRUE(first.ok());
  HostArray after = *executor->getTensor("w");

  watch.fails = true;
  absl::Status failed = executor->step(inputs).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(failed.message(), "the link is down (in all_gather over d)");
  watch.fails = false;
  EXPECT_EQ(executor->inFlight(), 0);
  absl::Status status = executor->step(inputs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "parameter \"w\" has no value, since \"train_step\" failed midway "
            "(the link is down (in all_gather over d)): initialize the "
            "parameters, or set all "
            "parameters and states");
  EXPECT_EQ(executor->getTensor("w").status(), status);
  ASSERT_TRUE(executor->setTensor("w", after.view()).ok());
  EXPECT_EQ(executor->getTensor("w")->data, after.data);
  EXPECT_EQ(executor->step(inputs).status().code(),
            absl::StatusCode::kFailedPrecondition);

  // From new values on, steps are those of a new executor.
  ASSERT_TRUE(executor->initializeParameters().ok());
  auto again = executor->step(inputs);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->loss, first->loss);
  EXPECT_EQ(executor->getTensor("w")->data, after.data);
}

TEST(ParameterStateTest, AProgramThatOnlyReadsKeepsTheValues) {
  auto context = Context::create({2});
  WatchedCollectives::Watch watch;
  auto executor =
      makeWatched(**context,
                  makePlan(2,
                           [](fb::PlanT &p) {
                             // A second program, without the launch that
                             // updates.
                             fb::ProgramT &step = *p.programs[0];
                             auto program =
                                 std::make_unique<fb::ProgramT>(step);
                             program->name = "evaluate";
                             program->commands.pop_back();
                             p.programs.push_back(std::move(program));
                           }),
                  watch);
  HostArray x = makeInput();
  NamedArrays inputs = {{"x", x.view()}};
  ASSERT_TRUE(executor->initializeParameters().ok());
  HostArray before = *executor->getTensor("w");
  watch.fails = true;
  EXPECT_EQ(executor->run("evaluate", inputs).status().code(),
            absl::StatusCode::kInternal);
  watch.fails = false;
  EXPECT_EQ(executor->getTensor("w")->data, before.data);
  EXPECT_TRUE(executor->run("evaluate", inputs).ok());
  EXPECT_TRUE(executor->step(inputs).ok());
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
      int run = i % shard / (shard / 3), row = i / shard;
      float expected = 2.0f * i + row + 100.0f * run;
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

TEST(ExecutorTest, RefusesNullPointers) {
  auto context = Context::create({1});
  EXPECT_EQ(Executor::create(**context, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto executor = makeExecutor(**context, makePlan(2));
  std::vector<int64_t> shape = {12};
  ArrayView null{DType::F32, shape, nullptr};
  for (const absl::Status &status :
       {executor->step({{"x", null}}).status(), executor->setTensor("x", null)})
    EXPECT_EQ(status, absl::InvalidArgumentError(
                          "input \"x\" is f32[12], got a null pointer"));
}

TEST(ExecutorTest, RefusesLabelsThatAreNoClass) {
  auto context = Context::create({1});
  for (bool isWide : {false, true}) {
    auto executor = makeExecutor(**context, makePlan(2, [&](fb::PlanT &p) {
      // Labels that no command reads, behind all else.
      auto labels = std::make_unique<fb::TensorT>(*p.tensors[0]);
      labels->name = "y";
      labels->role = fb::Role::Label;
      labels->dtype = isWide ? fb::DType::I64 : fb::DType::I32;
      labels->shape = {6, 2};
      labels->sharding = std::make_unique<fb::ShardingT>();
      for (int dim = 0; dim < 2; ++dim)
        labels->sharding->dims.push_back(std::make_unique<fb::DimShardingT>());
      labels->label_classes = 10;
      labels->offset = p.arena_bytes;
      labels->bytes = isWide ? 96 : 48;
      p.arena_bytes += 128;
      p.tensors.push_back(std::move(labels));
    }));
    HostArray x = makeInput();
    HostArray y(isWide ? DType::I64 : DType::I32, {6, 2});
    auto step = [&](int64_t value) {
      if (isWide)
        y.values<int64_t>()[7] = value;
      else
        y.values<int32_t>()[7] = static_cast<int32_t>(value);
      return executor->step({{"x", x.view()}, {"y", y.view()}}).status();
    };
    EXPECT_TRUE(step(9).ok());
    EXPECT_EQ(step(10), absl::InvalidArgumentError(
                            "label \"y\" has the value 10 in row 3, expected "
                            "0 to 9"));
    EXPECT_EQ(step(-5), absl::InvalidArgumentError(
                            "label \"y\" has the value -5 in row 3, expected "
                            "0 to 9"));
    EXPECT_TRUE(step(0).ok());
  }
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
