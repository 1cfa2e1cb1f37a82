//===- CudaExecutorTest.cpp - Plans for GPUs against the fake -------------===//

#include "CudaFixture.h"
#include "Sanitized.h"

#include "backends/cuda/MeasureGpu.h"
#include "backends/cuda/MeasureGpuCollectives.h"
#include "shardc-rt/Trainer.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <unistd.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

/// The CPU's results of the same plan.
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
  std::string call = "cuMemAlloc(" + std::to_string(plan->arenaBytes()) + ")";
  EXPECT_EQ(std::count(fake->details.begin(), fake->details.end(), call), 4);
  // The tables of collectives: shards of 12 bytes go to 4 devices, one of them
  // in two pieces for its alignment; and a number is reduced in 4 places. Each
  // box has a block.
  const uint64_t tables =
      5 * (56 + 8 * (1 + 4) + 4) + 1 * (56 + 8 * (4 + 4) + 4);
  // A context of one axis, the seed and the run, scratch memory, and a shard of
  // inputs in two batches.
  const uint64_t beside = 24 + 1024 + 2 * 64;
  EXPECT_EQ(fake->bytesAllocated, 4 * (plan->arenaBytes() + beside) + tables);
  EXPECT_EQ((*executor)->scratchBytesPerDevice(), beside + tables / 4);
}

TEST_F(CudaExecutorTest, MeasuresAGpu) {
  auto rates = cuda::measureGpu(options, 48);
  ASSERT_TRUE(rates.ok()) << rates.status();
  EXPECT_EQ(rates->memoryBytes, uint64_t(80) << 30);
  for (double rate : {rates->f32, rates->tf32, rates->bf16, rates->memory})
    EXPECT_GT(rate, 0);
  // One run of each GEMM is not counted.
  EXPECT_EQ(std::count(fake->details.begin(), fake->details.end(),
                       "cublasLtMatmul(48 x 48)"),
            18);
  options.gpu = 100;
  EXPECT_EQ(cuda::measureGpu(options).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(CudaExecutorTest, MeasuresTimesOfCommands) {
  fake->isIdle = true;
  auto times = cuda::measureTimes(options, {16, 48});
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_GE(times->commandSeconds, 0);
  EXPECT_GE(times->stepSeconds, 0);
  EXPECT_GE(times->concurrentCommandSeconds, 0);
  EXPECT_GT(times->hostBytesPerSecond, 0);
  ASSERT_GT(times->memory.size(), 1u);
  double before = HUGE_VAL;
  for (auto [distance, rate] : times->memory) {
    EXPECT_GT(rate, 0);
    EXPECT_LE(rate, before) << distance;
    before = rate;
  }
  ASSERT_EQ(times->gemms.size(), 3u * 8);
  for (const cuda::GemmTime &gemm : times->gemms)
    EXPECT_GT(gemm.seconds, 0);
  ASSERT_EQ(times->factors.size(), 3u * 2 * 3);
  for (const cuda::GemmFactor &one : times->factors)
    EXPECT_GT(one.factor, 0);
  EXPECT_STREQ(times->factors[5].form, "sums_rhs");
  EXPECT_EQ(times->factors[5].side, 48);
  EXPECT_STREQ(times->gemms[8].type, "tf32");
  EXPECT_EQ(times->gemms[9].terms, 48);
  // Rows of the result are the library's columns. Outside of the capture once.
  EXPECT_EQ(std::count(fake->details.begin(), fake->details.end(),
                       "cublasLtMatmul(48 x 16)"),
            3 * 2 * (1 + 16));
  for (const char *call :
       {"cuGraphInstantiateWithFlags", "cuMemcpyHtoDAsync", "cublasLtMatmul"}) {
    fake->calls.clear();
    fake->details.clear();
    fake->failAt = 0;
    ASSERT_TRUE(cuda::measureTimes(options, {16}).ok());
    const auto place = std::find(fake->calls.begin(), fake->calls.end(), call);
    ASSERT_NE(place, fake->calls.end()) << call;
    fake->failAt = place - fake->calls.begin() + 1;
    fake->calls.clear();
    fake->details.clear();
    EXPECT_FALSE(cuda::measureTimes(options, {16}).ok()) << call;
  }
}

TEST_F(CudaExecutorTest, MeasuresCollectives) {
  fake->gpus = 2;
  options.ncclPath = options.driverPath;
  CollectiveTensor tensor;
  tensor.dtype = DType::F32;
  tensor.inShape = tensor.outShape = {2, 8};
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllReduce;
  spec.axes = {1};
  spec.tensors = {tensor};
  const Mesh mesh({{"outer", 1}, {"group", 2}});
  // Of virtual devices, and by NCCL; what is captured is not run, and a batch
  // runs 2 · (1 + 5) times.
  for (int gpus : {1, 2}) {
    options.gpus = gpus;
    fake->calls.clear();
    auto collectives = cuda::MeasuredCollectives::open(options);
    ASSERT_TRUE(collectives.ok()) << collectives.status();
    ASSERT_TRUE((*collectives)->connect(mesh).ok());
    auto seconds = (*collectives)->measure(spec);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    EXPECT_GT(*seconds, 0);
    EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(),
                         gpus == 1 ? "cuLaunchKernel" : "ncclAllReduce"),
              gpus * 17);
    EXPECT_EQ(
        std::count(fake->calls.begin(), fake->calls.end(), "cuGraphLaunch"),
        gpus * 12);
    if (gpus > 1)
      break;
    const auto calls = static_cast<int64_t>(fake->calls.size());
    for (int64_t call = 1; call <= calls; call += 7) {
      fake->calls.clear();
      fake->failAt = call;
      auto opened = cuda::MeasuredCollectives::open(options);
      if (opened.ok() && (*opened)->connect(mesh).ok())
        (void)(*opened)->measure(spec);
      fake->failAt = 0;
    }
  }
  EXPECT_EQ(fake->bytesAllocated, 0u);
}

TEST_F(CudaExecutorTest, AStepIsOneGraphLaunch) {
  auto executor = create(makeGpuPlan(4));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  fake->calls.clear();
  const int steps = 5;
  for (int step = 0; step < steps; ++step)
    ASSERT_TRUE((*executor)->step(inputs()).ok());
  EXPECT_EQ(countCalls("cuGraphLaunch"), steps);
  // All shards of the inputs are one copy.
  EXPECT_EQ(countCalls("cuMemcpyHtoDAsync"), steps);
  EXPECT_EQ(countCalls("cuEventRecord"), 2 * steps);
  EXPECT_EQ(countCalls("cuStreamWaitEvent"), steps);
  EXPECT_EQ(countCalls("cuEventQuery"), steps);
  EXPECT_EQ(countCalls("cuCtxSetCurrent"), 3 * steps);
  EXPECT_EQ(fake->calls.size(), 9u * steps);
}

TEST_F(CudaExecutorTest, IssuesCommandsBetweenTheirEvents) {
  auto executor = create(makeGpuPlan(1));
  ASSERT_TRUE(executor.ok()) << executor.status();
  // The capture of the first of two batches.
  auto &details = fake->details;
  auto begin =
      std::find(details.begin(), details.end(), "cuStreamBeginCapture()");
  auto end = std::find(begin, details.end(), "cuStreamEndCapture()");
  ASSERT_NE(end, details.end());
  std::vector<std::string> expected = {
      "cuStreamBeginCapture()", "cuEventRecord()", "cuStreamWaitEvent()",
      "cuStreamWaitEvent()", "cuStreamWaitEvent()",
      // Upload, then the launch that waits for it.
      "cuMemcpyDtoDAsync(48)", "cuEventRecord()", "cuStreamWaitEvent()",
      "cuLaunchKernel(test_scale, 12, 64)", "cuEventRecord()",
      // The collectives behind each other.
      "cuStreamWaitEvent()", "cuLaunchKernel(shardc_copy_boxes, 1, 256)",
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
  // A run that is not awaited ends before its memory is freed.
  fake->queriesNotReady = 3;
  ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  fake->calls.clear();
  executor->reset();
  EXPECT_EQ(countCalls("cuEventQuery"), 4);
}

TEST_F(CudaExecutorTest, TrainingKeepsTwoStepsInFlight) {
  auto executor = create(makeGpuPlan(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  Dataset dataset;
  dataset.name = "test";
  dataset.rows = 48;
  dataset.arrays["x"] = HostArray(DType::F32, {48});
  // b: a batch is submitted; s: a step has ended.
  std::string events;
  TrainOptions trainOptions;
  trainOptions.steps = 4;
  trainOptions.onBatch = [&](const Batch &) {
    events += 'b';
    return absl::OkStatus();
  };
  trainOptions.onStep = [&](const StepRecord &, const RunResult &) {
    events += 's';
    return absl::OkStatus();
  };
  std::ostringstream log;
  auto summary = shardc::rt::train(**executor, dataset, trainOptions, log);
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(events, "bbsbsbss");
  EXPECT_TRUE(std::isnan(summary->communicationShare));
}

TEST_F(CudaExecutorTest, EveryFailureIsCleanedUp) {
  auto plan = makeGpuPlan(2);
  int64_t failed = 0;
  const int64_t every = isSanitized ? 5 : 1;
  for (fake->failAt = 1;; fake->failAt += every) {
    fake->calls.clear();
    fake->details.clear();
    absl::Status status = [&] {
      auto executor = create(plan);
      return executor.ok() ? train(**executor, 2).status() : executor.status();
    }();
    EXPECT_EQ(fake->handles(), 0) << "call " << fake->failAt;
    EXPECT_EQ(fake->bytesAllocated, 0) << "call " << fake->failAt;
    if (static_cast<int64_t>(fake->calls.size()) < fake->failAt)
      break;
    const std::string &call = fake->calls[fake->failAt - 1];
    // Destroying handles reports errors of earlier work, which are known
    // already.
    bool isEnd = call.find("Destroy") != std::string::npos ||
                 call.find("Free") != std::string::npos ||
                 call == "cuModuleUnload" ||
                 call == "cuDevicePrimaryCtxRelease";
    auto &after = fake->calls;
    isEnd |= call == "cuCtxSetCurrent" && status.ok() &&
             (after[fake->failAt].find("Destroy") != std::string::npos ||
              after[fake->failAt].find("Free") != std::string::npos ||
              after[fake->failAt] == "cuModuleUnload");
    EXPECT_EQ(status.ok(), isEnd) << call << ": " << status;
    failed += !status.ok();
  }
  EXPECT_GT(failed, 100 / every);
}

TEST_F(CudaExecutorTest, SaysWhatItLookedFor) {
  options.driverPath = empty / "libcuda.so.1";
  auto executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(executor.status().message().find(empty / "libcuda.so.1"),
            absl::string_view::npos)
      << executor.status();
  options.driverPath = FAKE_LIBRARY;
  options.cublasLtPath = empty / "libcublasLt.so.12";
  executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(executor.status().message().find("cuBLASLt"),
            absl::string_view::npos)
      << executor.status();
}

TEST_F(CudaExecutorTest, AWaitHasADeadline) {
  auto executor = create(makeGpuPlan(1));
  ASSERT_TRUE(executor.ok()) << executor.status();
  executor->reset();
  options.deadline = absl::Milliseconds(3);
  fake->queriesNotReady = 1 << 30;
  executor = create(makeGpuPlan(1));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kDeadlineExceeded)
      << executor.status();
}

TEST_F(CudaExecutorTest, ProgramsRunOnceBeforeTheyAreCaptured) {
  auto plan = makeGpuPlan(2);
  ExecutorOptions executorOptions;
  executorOptions.poisonPadding = true;
  auto executor = createCudaExecutor(plan, executorOptions, options);
  ASSERT_TRUE(executor.ok()) << executor.status();
  auto isCapture =
      std::find(fake->calls.begin(), fake->calls.end(), "cuStreamBeginCapture");
  EXPECT_EQ(std::count(fake->calls.begin(), isCapture, "cublasLtMatmul"), 2);
  // It leaves nothing in the arena, in which every bit is set at first.
  auto x = (*executor)->getTensor("x");
  ASSERT_TRUE(x.ok());
  for (std::byte value : x->data)
    EXPECT_EQ(value, std::byte(0xff));
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
  fake->calls.clear();
  ASSERT_TRUE((*executor)->step(inputs()).ok());
  int64_t queries = 0, at = 0;
  while (queries < 6)
    queries += fake->calls[at++] == "cuEventQuery";
  fake->calls.clear();
  fake->failAt = at;
  absl::Status status = (*executor)->step(inputs()).status();
  EXPECT_NE(
      status.message().find("command 1 (launch of test_scale, model.mlir:3:7)"),
      absl::string_view::npos)
      << status;
  // After that nothing can be run, set or read any more.
  EXPECT_EQ((*executor)->step(inputs()).status(), status);
  EXPECT_EQ((*executor)->initializeParameters(), status);
  EXPECT_EQ((*executor)->getTensor("w").status(), status);
  HostArray w(DType::F32, {4});
  EXPECT_EQ((*executor)->setTensor("w", w.view()), status);
}

TEST_F(CudaExecutorTest, NothingRunsWithoutValues) {
  auto executor = create(makeGpuPlan(1));
  ASSERT_TRUE(executor.ok()) << executor.status();
  absl::Status status = (*executor)->step(inputs()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ((*executor)->getTensor("w").status(), status);
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  EXPECT_TRUE((*executor)->step(inputs()).ok());
}

TEST_F(CudaExecutorTest, RangesAreNamedAsInThePlan) {
  options.nvtxPath = empty / "profiler.so";
  EXPECT_EQ(create(makeGpuPlan(1)).status().code(),
            absl::StatusCode::kUnavailable);
  options.nvtxPath = FAKE_LIBRARY;
  auto plan = makeGpuPlan(1, [](fb::PlanT &plan) {
    plan.programs[0]->commands[1]->source = "model.mlir:3:7";
  });
  auto executor = create(plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  auto contains = [&](const std::string &range) {
    auto &all = fake->ranges;
    return std::find(all.begin(), all.end(), range) != all.end();
  };
  EXPECT_TRUE(contains("launch of test_scale, model.mlir:3:7"));
  EXPECT_TRUE(contains("all_reduce"));
  EXPECT_TRUE(contains("gemm"));
  // A step is one range: its commands are in the graph.
  fake->ranges.clear();
  ASSERT_TRUE((*executor)->step(inputs()).ok());
  EXPECT_EQ(fake->ranges, (std::vector<std::string>{"train_step", ""}));
}

TEST_F(CudaExecutorTest, GemmsAreTimedOnce) {
  options.gemmCachePath =
      testing::TempDir() + "shardc-gemms-" + std::to_string(getpid()) + ".txt";
  std::remove(options.gemmCachePath.c_str());
  fake->fastAlgorithm = 2;
  auto countGemms = [&](const std::string &what) {
    return std::count(fake->details.begin(), fake->details.end(),
                      "cublasLtMatmul(4 x 1" + what + ")");
  };
  for (bool isFirst : {true, false}) {
    fake->details.clear();
    auto executor = create(makeGpuPlan(1));
    ASSERT_TRUE(executor.ok()) << executor.status();
    // Once before the graphs of two batches; six times to time one of four.
    EXPECT_EQ(countGemms(", algorithm 2"), 3 + (isFirst ? 6 : 0));
    EXPECT_EQ(countGemms(", algorithm 3"), isFirst ? 6 : 0);
    EXPECT_EQ(countGemms(""), isFirst ? 6 : 0);
    auto bits = train(**executor, 3);
    ASSERT_TRUE(bits.ok()) << bits.status();
    EXPECT_EQ(*bits, trainOnCpu(1, 3, train));
  }
  // Lines of another format, or of another machine, are ignored.
  std::ofstream(options.gemmCachePath) << "nonsense\nother GPU\t12\t00\n";
  fake->details.clear();
  EXPECT_TRUE(create(makeGpuPlan(1)).ok());
  EXPECT_EQ(countGemms(", algorithm 3"), 6);
  std::remove(options.gemmCachePath.c_str());
  options.gemmCachePath = empty / "folder/gemms.txt";
  absl::Status status = create(makeGpuPlan(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
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

/// No library computes them. Without columns there is nothing to compute.
TEST_F(CudaExecutorTest, RefusesGemmsWithoutElements) {
  auto sumsOf = [](int64_t m, int64_t k, int64_t n) {
    return [=](fb::PlanT &plan) {
      fb::GemmT *gemm = nullptr;
      for (auto &command : plan.programs[0]->commands)
        if (!gemm)
          gemm = command->operation.AsGemm();
      gemm->m = m;
      gemm->k = k;
      gemm->n = n;
      gemm->a = test::addOwnBuffer(plan, fb::DType::F32, {m, k});
      gemm->b = test::addOwnBuffer(plan, fb::DType::F32, {k, n});
      gemm->c = test::addOwnBuffer(plan, fb::DType::F32, {m, n});
      gemm->column_sums = test::addOwnBuffer(plan, fb::DType::F32, {n});
    };
  };
  auto check = [&](int64_t m, int64_t k, int64_t n) {
    return std::string(
        create(makeGpuPlan(1, sumsOf(m, k, n))).status().message());
  };
  EXPECT_EQ(check(2, 3, 0), "");
  EXPECT_EQ(check(0, 3, 4), "program \"train_step\", command 4 (gemm): sums of "
                            "columns by a GEMM without elements on a GPU");
  EXPECT_EQ(check(2, 0, 4),
            "program \"train_step\", command 4 (gemm): a GEMM of "
            "empty factors on a GPU");
}
