//===- CudaExecutorTest.cpp - Plans for GPUs against the stand-in ---------===//

#include "standin/StandIn.h"

#include "TestPlan.h"

#include "shardc-rt/Cuda.h"

#include <algorithm>
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

class CudaExecutorTest : public ::testing::Test {
protected:
  void SetUp() override {
    // Keeps the library, and so what it counts, while executors come and go.
    library = dlopen(STAND_IN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto get =
        reinterpret_cast<StandIn *(*)()>(dlsym(library, "shardcStandIn"));
    standIn = get();
    *standIn = StandIn();
    standIn->kernelLibrary = TEST_KERNELS;
    options.driverPath = options.cublasLtPath = STAND_IN;
  }
  void TearDown() override {
    for (const auto &[kind, count] : standIn->live)
      EXPECT_EQ(count, 0) << kind;
    EXPECT_EQ(standIn->bytesAllocated, 0);
    dlclose(library);
  }

  /// The plan of TestPlan.h for a GPU, with PTX that declares its kernels.
  static std::shared_ptr<const Plan>
  makeGpuPlan(int devices, const std::function<void(fb::PlanT &)> &edit = {}) {
    auto parsed = Plan::parse(makePlan(devices, [&](fb::PlanT &plan) {
      onGpu(plan);
      std::string ptx = ".version 7.8\n"
                        ".entry test_scale( .param .u64 a, .param .u64 b,\n"
                        "  .param .u64 c ) { ret; }\n"
                        ".entry test_update( .param .u64 a, .param .u64 b,\n"
                        "  .param .u64 c, .param .u64 d ) { ret; }\n";
      plan.code.assign(ptx.begin(), ptx.end());
      if (edit)
        edit(plan);
    }));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *parsed : nullptr;
  }

  /// A plan of one program for CPUs as one for a GPU, in the same order.
  static std::shared_ptr<const Plan> inOrder(const Plan &cpu) {
    auto gpu = std::make_shared<Plan>(cpu);
    auto model = makeGpuPlan(1);
    gpu->gpuTarget = model->gpuTarget;
    gpu->code = model->code;
    ProgramSpec &program = gpu->programs[0];
    std::vector<Command> commands;
    auto add = [&](auto operation) {
      Command &command = commands.emplace_back();
      command.operation = operation;
      command.part = Part::Forward;
    };
    add(UploadCommand{2});
    for (const Command &command : program.commands) {
      if (std::holds_alternative<CollectiveWaitCommand>(command.operation))
        continue;
      uint32_t before = commands.size() - 1;
      bool communicates =
          std::holds_alternative<CollectiveStartCommand>(command.operation);
      commands.push_back(command);
      if (communicates)
        commands.back().stream = Stream::Communication;
      if (commands.back().stream != commands[before].stream)
        commands.back().after = {before};
      if (auto *launch = std::get_if<LaunchCommand>(&commands.back().operation))
        launch->threads = 32;
    }
    for (uint32_t result = 0; result < program.results.size(); ++result)
      add(DownloadCommand{result});
    program.commands = std::move(commands);
    return gpu;
  }

  absl::StatusOr<std::unique_ptr<Executor>>
  create(std::shared_ptr<const Plan> plan) {
    ExecutorOptions executorOptions;
    executorOptions.seed = 7;
    return createCudaExecutor(std::move(plan), executorOptions, options);
  }

  static NamedArrays inputs() {
    static const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t shape[] = {12};
    return {{"x", {DType::F32, shape, x.data()}}};
  }

  /// Results and parameters of some steps, as bits.
  static absl::StatusOr<std::vector<std::byte>> train(Executor &executor,
                                                      int steps) {
    std::vector<std::byte> bits;
    auto append = [&](const HostArray &array) {
      bits.insert(bits.end(), array.data.begin(), array.data.end());
    };
    if (absl::Status s = executor.initializeParameters(); !s.ok())
      return s;
    // Products whose sums are exact in any order.
    HostArray m(DType::F32, {12, 4});
    for (int i = 0; i < 48; ++i)
      m.values<float>()[i] = i % 7 - 3;
    if (absl::Status s = executor.setTensor("m", m.view()); !s.ok())
      return s;
    for (int step = 0; step < steps; ++step) {
      absl::StatusOr<RunResult> result = executor.step(inputs());
      if (!result.ok())
        return result.status();
      for (const auto &[name, array] : result->results)
        append(array);
    }
    for (const char *name : {"w", "m"}) {
      absl::StatusOr<HostArray> array = executor.getTensor(name);
      if (!array.ok())
        return array.status();
      append(*array);
    }
    return bits;
  }

  int64_t countCalls(const std::string &name) const {
    return std::count(standIn->calls.begin(), standIn->calls.end(), name);
  }

  void *library = nullptr;
  StandIn *standIn = nullptr;
  CudaOptions options;
};

/// What the CPU makes of the same plan.
std::vector<std::byte>
trainOnCpu(int devices, int steps,
           absl::StatusOr<std::vector<std::byte>> (*train)(Executor &, int)) {
  auto plan = Plan::parse(makePlan(devices));
  auto context = Context::create();
  ExecutorOptions options;
  options.seed = 7;
  auto executor = Executor::create(**context, *plan, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  return *train(**executor, steps);
}

} // namespace

TEST_F(CudaExecutorTest, GivesTheBitsOfTheCpu) {
  for (int devices : {1, 2, 3, 4, 6, 8}) {
    auto executor = create(makeGpuPlan(devices));
    ASSERT_TRUE(executor.ok()) << executor.status();
    auto bits = train(**executor, 3);
    ASSERT_TRUE(bits.ok()) << bits.status();
    EXPECT_EQ(*bits, trainOnCpu(devices, 3, train)) << devices;
  }
}

TEST_F(CudaExecutorTest, AllocatesThePlansArenas) {
  auto plan = makeGpuPlan(4);
  auto executor = create(plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  std::string call = "cuMemAlloc(" + std::to_string(plan->arenaBytes) + ")";
  EXPECT_EQ(std::count(standIn->details.begin(), standIn->details.end(), call),
            4);
  // A context of one axis, the seed and the run, and scratch memory.
  EXPECT_EQ(standIn->bytesAllocated, 4 * (plan->arenaBytes + 24 + 1024));
}

TEST_F(CudaExecutorTest, AStepIsOneGraphLaunch) {
  auto executor = create(makeGpuPlan(4));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  standIn->calls.clear();
  const int steps = 5;
  for (int step = 0; step < steps; ++step)
    ASSERT_TRUE((*executor)->step(inputs()).ok());
  EXPECT_EQ(countCalls("cuGraphLaunch"), steps);
  EXPECT_EQ(countCalls("cuEventRecord"), steps);
  EXPECT_EQ(countCalls("cuEventQuery"), steps);
  EXPECT_EQ(countCalls("cuCtxSetCurrent"), 2 * steps);
  EXPECT_EQ(standIn->calls.size(), 5u * steps);
}

TEST_F(CudaExecutorTest, IssuesCommandsBetweenTheirEvents) {
  auto executor = create(makeGpuPlan(1));
  ASSERT_TRUE(executor.ok()) << executor.status();
  // The capture of the first of two batches.
  auto &details = standIn->details;
  auto begin =
      std::find(details.begin(), details.end(), "cuStreamBeginCapture()");
  auto end = std::find(begin, details.end(), "cuStreamEndCapture()");
  ASSERT_NE(end, details.end());
  std::vector<std::string> expected = {
      "cuStreamBeginCapture()", "cuEventRecord()", "cuStreamWaitEvent()",
      "cuStreamWaitEvent()", "cuStreamWaitEvent()",
      // Upload, then the launch that waits for it.
      "cuMemcpyHtoDAsync(48)", "cuEventRecord()", "cuStreamWaitEvent()",
      "cuLaunchKernel(test_scale, 12, 64)", "cuEventRecord()",
      // The collectives, one of them a copy, behind each other.
      "cuStreamWaitEvent()", "cuMemcpyDtoDAsync(48)",
      "cuLaunchKernel(shardc_reduce_sum_f32, 1, 256)", "cuEventRecord()",
      "cuStreamWaitEvent()", "cublasLtMatmul(4 x 1)",
      "cuLaunchKernel(test_update, 4, 64)", "cuEventRecord()",
      // The results.
      "cuStreamWaitEvent()", "cuMemcpyDtoHAsync(4)", "cuMemcpyDtoHAsync(48)",
      "cuMemcpyDtoHAsync(16)",
      // The end of all streams.
      "cuEventRecord()", "cuStreamWaitEvent()", "cuEventRecord()",
      "cuStreamWaitEvent()", "cuEventRecord()", "cuStreamWaitEvent()"};
  EXPECT_EQ(std::vector<std::string>(begin, end), expected);
  EXPECT_EQ(countCalls("cuGraphInstantiateWithFlags"), 2);
}

TEST_F(CudaExecutorTest, TwoRunsAreInFlight) {
  auto executor = create(makeGpuPlan(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  EXPECT_FALSE((*executor)->await().ok());
  ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  EXPECT_EQ((*executor)->inFlight(), 2);
  EXPECT_EQ((*executor)->submit("train_step", inputs()).code(),
            absl::StatusCode::kFailedPrecondition);
  auto first = (*executor)->await(), second = (*executor)->await();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->loss, second->loss);
  // One that nobody waits for ends before the memory it uses.
  standIn->queriesNotReady = 3;
  ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  standIn->calls.clear();
  executor->reset();
  EXPECT_EQ(countCalls("cuEventQuery"), 4);
}

TEST_F(CudaExecutorTest, EveryFailureIsCleanedUp) {
  auto plan = makeGpuPlan(2);
  int64_t failed = 0;
  for (standIn->failAt = 1;; ++standIn->failAt) {
    standIn->calls.clear();
    standIn->details.clear();
    absl::Status status = [&] {
      auto executor = create(plan);
      return executor.ok() ? train(**executor, 2).status() : executor.status();
    }();
    EXPECT_EQ(standIn->handles(), 0) << "call " << standIn->failAt;
    EXPECT_EQ(standIn->bytesAllocated, 0) << "call " << standIn->failAt;
    if (static_cast<int64_t>(standIn->calls.size()) < standIn->failAt)
      break;
    const std::string &call = standIn->calls[standIn->failAt - 1];
    // Giving back reports errors of earlier work, which have been seen.
    bool isEnd = call.find("Destroy") != std::string::npos ||
                 call.find("Free") != std::string::npos ||
                 call == "cuModuleUnload" ||
                 call == "cuDevicePrimaryCtxRelease";
    auto &after = standIn->calls;
    isEnd |= call == "cuCtxSetCurrent" && status.ok() &&
             (after[standIn->failAt].find("Destroy") != std::string::npos ||
              after[standIn->failAt].find("Free") != std::string::npos ||
              after[standIn->failAt] == "cuModuleUnload");
    EXPECT_EQ(status.ok(), isEnd) << call << ": " << status;
    failed += !status.ok();
  }
  EXPECT_GT(failed, 100);
}

TEST_F(CudaExecutorTest, SaysWhatItLookedFor) {
  options.driverPath = "/no/such/libcuda.so.1";
  auto executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(executor.status().message().find("/no/such/libcuda.so.1"),
            absl::string_view::npos)
      << executor.status();
  options.driverPath = STAND_IN;
  options.cublasLtPath = "/no/such/libcublasLt.so.12";
  executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(executor.status().message().find("cuBLASLt"),
            absl::string_view::npos)
      << executor.status();
}

TEST_F(CudaExecutorTest, ShowsTheCompilersLog) {
  standIn->jitError = "line 3: unknown instruction 'frobnicate'";
  auto executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(executor.status().message().find(standIn->jitError),
            absl::string_view::npos)
      << executor.status();
}

TEST_F(CudaExecutorTest, RefusesOlderGpusAndPlansForCpus) {
  standIn->architecture = 80;
  auto executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(executor.status().message().find("is sm_80"),
            absl::string_view::npos)
      << executor.status();
  executor = create(*Plan::parse(makePlan(1)));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CudaExecutorTest, RefusesCollectivesBesideTheirStream) {
  auto executor = create(makeGpuPlan(2, [](fb::PlanT &plan) {
    auto &commands = plan.programs[0]->commands;
    commands[2]->stream = fb::Stream::Compute;
    commands[2]->after.clear();
    commands[3]->after = {2};
  }));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(executor.status().message().find("a collective on stream compute"),
            absl::string_view::npos)
      << executor.status();
}

TEST_F(CudaExecutorTest, AWaitHasADeadline) {
  auto executor = create(makeGpuPlan(1));
  ASSERT_TRUE(executor.ok()) << executor.status();
  executor->reset();
  options.deadline = absl::Milliseconds(3);
  standIn->queriesNotReady = 1 << 30;
  executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kDeadlineExceeded)
      << executor.status();
}

TEST_F(CudaExecutorTest, SerializedErrorsNameTheCommand) {
  options.serialize = true;
  auto plan = makeGpuPlan(2, [](fb::PlanT &plan) {
    plan.programs[0]->commands[1]->source = "model.mlir:3:7";
  });
  auto executor = create(plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ(countCalls("cuGraphInstantiateWithFlags"), 0);
  auto bits = train(**executor, 3);
  ASSERT_TRUE(bits.ok()) << bits.status();
  EXPECT_EQ(*bits, trainOnCpu(2, 3, train));
  // Two streams a device and one for communication, after each command: the
  // wait after the second, which is the launch, fails.
  standIn->calls.clear();
  ASSERT_TRUE((*executor)->step(inputs()).ok());
  int64_t queries = 0, at = 0;
  while (queries < 6)
    queries += standIn->calls[at++] == "cuEventQuery";
  standIn->calls.clear();
  standIn->failAt = at;
  absl::Status status = (*executor)->step(inputs()).status();
  EXPECT_NE(
      status.message().find("command 1 (launch of test_scale, model.mlir:3:7)"),
      absl::string_view::npos)
      << status;
}

TEST_F(CudaExecutorTest, RunsLoops) {
  for (int devices : {1, 2, 4}) {
    auto parsed = Plan::parse(makePlan(devices, addLoops));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    auto context = Context::create();
    auto cpu = Executor::create(**context, *parsed);
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    auto expected = train(**cpu, 2);
    ASSERT_TRUE(expected.ok());
    auto executor = createCudaExecutor(inOrder(**parsed), {}, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    auto bits = train(**executor, 2);
    ASSERT_TRUE(bits.ok()) << bits.status();
    EXPECT_EQ(*bits, *expected);
  }
}
