//===- CudaSeveralGpusTest.cpp - A GPU for each device --------------------===//
//
// In one process. Several processes: scripts/check-ranks.sh.
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"
#include "Sanitized.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

class CudaSeveralGpusTest : public CudaExecutorTest {
protected:
  absl::StatusOr<std::unique_ptr<Executor>>
  createOn(int gpus, std::shared_ptr<const Plan> plan) {
    fake->gpus = options.gpus = gpus;
    return create(std::move(plan));
  }
  static bool has(const absl::Status &status, absl::string_view text) {
    return status.message().find(text) != absl::string_view::npos;
  }
};

TEST_F(CudaSeveralGpusTest, GivesTheBitsOfOneGpu) {
  for (int devices : {2, 3, 4, 6, 8}) {
    auto plan = makeGpuPlan(devices);
    std::vector<std::vector<std::byte>> all;
    for (int gpus : {1, devices}) {
      auto executor = createOn(gpus, plan);
      ASSERT_TRUE(executor.ok()) << executor.status();
      auto bits = train(**executor, 3);
      ASSERT_TRUE(bits.ok()) << bits.status();
      all.push_back(*bits);
    }
    EXPECT_EQ(all[0], all[1]) << devices;
  }
}

TEST_F(CudaSeveralGpusTest, AStepIsAGraphLaunchForEachGpu) {
  auto executor = createOn(3, makeGpuPlan(3));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  fake->calls.clear();
  const int steps = 5;
  for (int step = 0; step < steps; ++step)
    ASSERT_TRUE((*executor)->step(inputs()).ok());
  EXPECT_EQ(countCalls("cuGraphLaunch"), 3 * steps);
  // The end of the copies of inputs, and of the run.
  EXPECT_EQ(countCalls("cuMemcpyHtoDAsync"), 3 * steps);
  EXPECT_EQ(countCalls("cuEventRecord"), 6 * steps);
  EXPECT_EQ(countCalls("cuStreamWaitEvent"), 3 * steps);
  EXPECT_EQ(countCalls("cuEventQuery"), 3 * steps);
  EXPECT_EQ(countCalls("cuCtxSetCurrent"), 13 * steps);
  EXPECT_EQ(fake->calls.size(), 31u * steps);
}

TEST_F(CudaSeveralGpusTest, CallsOfAllGpusAreOneGroup) {
  auto executor = createOn(2, makeGpuPlan(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  auto &details = fake->details;
  auto contains = [&](const std::string &call) {
    return std::find(details.begin(), details.end(), call) != details.end();
  };
  EXPECT_TRUE(contains("ncclCommInitRankConfig(0 of 2)"));
  EXPECT_TRUE(contains("ncclCommInitRankConfig(1 of 2)"));
  EXPECT_TRUE(contains("ncclCommSplit(color 0, key 1)"));
  // In the capture of the first of two batches.
  auto begin =
      std::find(details.begin(), details.end(), "cuStreamBeginCapture()");
  auto group = std::find(begin, details.end(), "ncclGroupStart()");
  ASSERT_NE(group, details.end());
  auto end = std::find(group, details.end(), "ncclGroupEnd()");
  std::vector<std::string> calls;
  for (auto call = group + 1; call < end; ++call)
    if (call->rfind("nccl", 0) == 0)
      calls.push_back(*call);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0].find("rank 0 of 2"), std::string::npos) << calls[0];
  EXPECT_NE(calls[1].find("rank 1 of 2"), std::string::npos) << calls[1];
  EXPECT_EQ(countCalls("cuGraphInstantiateWithFlags"), 4);
  // Communicators end before they are destroyed, those split off first.
  executor->reset();
  EXPECT_EQ(countCalls("ncclCommFinalize"), countCalls("ncclCommDestroy"));
  EXPECT_EQ(countCalls("ncclCommAbort"), 0);
}

TEST_F(CudaSeveralGpusTest, EveryFailureIsCleanedUp) {
  auto plan = makeGpuPlan(2);
  fake->gpus = options.gpus = 2;
  int64_t failed = 0;
  const int64_t every = isSanitized ? 5 : 1;
  for (fake->failAt = 1;; fake->failAt += every) {
    fake->calls.clear();
    fake->details.clear();
    absl::Status status = [&] {
      auto executor = create(plan);
      return executor.ok() ? train(**executor, 2).status() : executor.status();
    }();
    for (const auto &[kind, count] : fake->live)
      ASSERT_EQ(count, 0) << kind << ", call " << fake->failAt;
    ASSERT_EQ(fake->bytesAllocated, 0) << "call " << fake->failAt;
    if (static_cast<int64_t>(fake->calls.size()) < fake->failAt)
      break;
    const std::string &call = fake->calls[fake->failAt - 1];
    // Destroying calls, and those around them, cannot report an error.
    bool isEnd = call.find("Destroy") != std::string::npos ||
                 call.find("Free") != std::string::npos ||
                 call == "ncclCommFinalize" || call == "cuModuleUnload" ||
                 call == "cuDevicePrimaryCtxRelease" ||
                 call == "cuCtxSetCurrent" || call == "ncclCommGetAsyncError";
    EXPECT_TRUE(isEnd || !status.ok()) << call << " " << fake->failAt;
    failed += !status.ok();
  }
  EXPECT_GT(failed, 200 / every);
}

TEST_F(CudaSeveralGpusTest, ErrorsOfCommunicatorsEndARun) {
  auto executor = createOn(2, makeGpuPlan(2));
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->initializeParameters().ok());
  fake->queriesNotReady = 1 << 30;
  fake->ncclError = 6; // ncclRemoteError
  ASSERT_TRUE((*executor)->submit("train_step", inputs()).ok());
  absl::Status status = (*executor)->await().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(has(status, "a run of \"train_step\"")) << status;
  EXPECT_TRUE(has(status, "a collective over d")) << status;
  EXPECT_TRUE(has(status, "remote process exited")) << status;
  EXPECT_GE(countCalls("ncclCommAbort"), 4);
  // No call succeeds after that.
  EXPECT_EQ((*executor)->submit("train_step", inputs()), status);
  fake->queriesNotReady = 0;
  fake->ncclError = 0;
}

TEST_F(CudaSeveralGpusTest, JoiningHasADeadline) {
  fake->ncclBusy = int64_t(1) << 40;
  options.deadline = absl::Milliseconds(20);
  auto executor = createOn(2, makeGpuPlan(2));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(has(executor.status(), "joining 2 devices: not done after"))
      << executor.status();
  EXPECT_EQ(countCalls("ncclCommAbort"), 2);
}

TEST_F(CudaSeveralGpusTest, SaysWhatItLookedFor) {
  options.ncclPath = empty / "libnccl.so.2";
  auto executor = createOn(2, makeGpuPlan(2));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(has(executor.status(), empty / "libnccl.so.2"))
      << executor.status();
  // One GPU needs no NCCL.
  EXPECT_TRUE(createOn(1, makeGpuPlan(2)).ok());
  options.ncclPath = FAKE_LIBRARY;
  fake->ncclVersion = 21705;
  executor = createOn(2, makeGpuPlan(2));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(has(executor.status(), "at least 21800")) << executor.status();
}

TEST_F(CudaSeveralGpusTest, DevicesHaveAGpuEachOrShareOne) {
  auto executor = createOn(3, makeGpuPlan(4));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(has(executor.status(),
                  "this process holds 4 of the 4 devices of the mesh d=4, and "
                  "3 GPUs: one each, or one for all, expected"))
      << executor.status();
  options.gpu = 1;
  executor = createOn(2, makeGpuPlan(2));
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(has(executor.status(), "GPU 2 of 2 that the driver shows"))
      << executor.status();
}
