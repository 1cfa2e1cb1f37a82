//===- CudaPipelineTest.cpp - Pipelines on GPUs against the fake ----------===//
//
// The plan of a pipeline gives the CPU's bits wherever its devices are: on one
// GPU, on a GPU each, and in several processes, also where one has devices of
// two pipeline ranks.
//
//===----------------------------------------------------------------------===//

#include "CudaFixture.h"
#include "Processes.h"
#include "Sanitized.h"

#include "comm/Socket.h"
#include "exec/CpuExecutor.h"
#include "shardc-rt/Store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

class CudaPipelineTest : public CudaExecutorTest {
protected:
  static std::shared_ptr<const Plan> makeGpuPlan(int ranks, int microbatches) {
    auto parsed = Plan::parse(makePipelinePlan(ranks, microbatches, onGpus));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *parsed : nullptr;
  }

  static HostArray makeInput(int microbatches) {
    HostArray x(DType::F32, {32 * microbatches});
    for (int i = 0; i < 32 * microbatches; ++i)
      x.values<float>()[i] = float(i % 7 - 2);
    return x;
  }

  /// What two steps and evaluations leave, as text.
  static std::string train(Executor &executor) {
    std::vector<std::string> said;
    auto fail = [&](const absl::Status &status) {
      return absl::StrCat("failed: ", status.message());
    };
    if (absl::Status s = executor.initializeParameters(); !s.ok())
      return fail(s);
    HostArray x = makeInput(static_cast<int>(executor.plan().batchSize() / 32));
    for (const char *program :
         {"train_step", "evaluate", "train_step", "evaluate"}) {
      auto result = executor.run(program, {{"x", x.view()}});
      if (!result.ok())
        return fail(result.status());
      said.push_back(absl::StrFormat("%s %a sends %d", program, result->loss,
                                     result->wireBytes));
    }
    for (const TensorInfo &tensor : executor.plan().tensors()) {
      auto array = executor.getTensor(tensor.name);
      if (!array.ok())
        return fail(array.status());
      if (tensor.role != Role::Input)
        said.push_back(
            absl::StrFormat("%s %a", tensor.name, array->values<float>()[0]));
    }
    return absl::StrJoin(said, ", ");
  }

  static std::string trainOnCpu(int ranks, int microbatches) {
    auto plan = Plan::parse(makePipelinePlan(ranks, microbatches));
    auto context = Context::create();
    ExecutorOptions seeded;
    seeded.seed = 7;
    auto executor = Executor::create(**context, *plan, seeded);
    EXPECT_TRUE(executor.ok()) << executor.status();
    return train(**executor);
  }

  /// What the processes of a run say; `body` has an executor, or its error.
  using Body = std::function<std::string(
      const Ranks &, absl::StatusOr<std::unique_ptr<Executor>>)>;
  std::vector<std::string>
  runProcesses(int count, std::shared_ptr<const Plan> plan, const Body &body) {
    return runRanks(count, [&](const Ranks &ranks) -> std::string {
      auto store = Store::connect(ranks, {options.deadline});
      if (!store.ok())
        return std::string(store.status().message());
      options.store = store->get();
      fake->gpus = options.gpus = plan->numDevices() / count;
      return body(ranks, create(plan));
    });
  }
};

} // namespace

TEST_F(CudaPipelineTest, GivesTheBitsOfTheCpuInOneProcess) {
  for (int ranks : {1, 2, 3, 4})
    for (int microbatches : {1, 2, 5}) {
      if (isSanitized && (ranks + microbatches) % 2 != 0)
        continue;
      auto plan = makeGpuPlan(ranks, microbatches);
      ASSERT_NE(plan, nullptr);
      std::string expected = trainOnCpu(ranks, microbatches);
      for (int gpus : {1, 4 * ranks})
        for (bool serialize : {false, true}) {
          fake->gpus = options.gpus = gpus;
          options.serialize = serialize;
          auto executor = create(plan);
          ASSERT_TRUE(executor.ok()) << executor.status();
          EXPECT_EQ(train(**executor), expected)
              << ranks << " ranks, " << microbatches << " microbatches, "
              << gpus << " GPUs, serialize " << serialize;
        }
    }
}

TEST_F(CudaPipelineTest, GivesTheBitsOfTheCpuInSeveralProcesses) {
  options.deadline = absl::Seconds(60);
  // In three processes of a pipeline of two ranks one has devices of both.
  for (auto [ranks, processes] :
       {std::pair(2, 2), std::pair(2, 4), std::pair(2, 8), std::pair(3, 2),
        std::pair(3, 4)}) {
    auto plan = makeGpuPlan(ranks, 3);
    ASSERT_NE(plan, nullptr);
    auto said = runProcesses(
        processes, plan,
        [&](const Ranks &, absl::StatusOr<std::unique_ptr<Executor>> executor) {
          return executor.ok() ? train(**executor)
                               : std::string(executor.status().message());
        });
    std::string expected = trainOnCpu(ranks, 3);
    EXPECT_EQ(said, std::vector<std::string>(processes, expected))
        << ranks << " ranks in " << processes << " processes";
  }
}

TEST_F(CudaPipelineTest, AllocatesTheArenasOfRanks) {
  auto plan = makeGpuPlan(3, 2);
  auto executor = create(plan);
  ASSERT_TRUE(executor.ok()) << executor.status();
  uint64_t all = 0;
  for (const PlanSpec &rank : plan->spec().ranks()) {
    std::string call = "cuMemAlloc(" + std::to_string(rank.arenaBytes) + ")";
    EXPECT_EQ(std::count(fake->details.begin(), fake->details.end(), call), 4);
    all += 4 * rank.arenaBytes;
  }
  EXPECT_EQ((*executor)->allocatedBytes(), all);
  // Contexts of three axes, the seed and the run, for two microbatches; and two
  // batches of four shards of inputs, which the devices on a GPU share, as they
  // do the tables of transfers and collectives.
  const uint64_t contexts = 2 * 40, inputs = 2 * 4 * 64;
  ASSERT_GT(fake->bytesAllocated, all + 12 * contexts + inputs);
  const uint64_t tables = fake->bytesAllocated - all - 12 * contexts - inputs;
  EXPECT_EQ((*executor)->scratchBytesPerDevice(),
            contexts + (inputs + 11) / 12 + (tables + 11) / 12);
}

/// A device has programs of one rank, but takes part in making the
/// communicators of all, in one order.
TEST_F(CudaPipelineTest, CommunicatorsAreThoseOfTheWholePlan) {
  options.deadline = absl::Seconds(60);
  auto said = runProcesses(
      8, makeGpuPlan(2, 2),
      [&](const Ranks &, const absl::StatusOr<std::unique_ptr<Executor>> &) {
        std::string splits;
        bool isFirst = true;
        for (const std::string &call : fake->details) {
          isFirst &= call.rfind("cuMemAlloc", 0) != 0;
          if (call.rfind("ncclCommSplit", 0) == 0)
            splits += isFirst ? "s" : "late";
        }
        return splits;
      });
  // Over stage, over data, and over both.
  EXPECT_EQ(said, std::vector<std::string>(8, "sss"));
}

TEST_F(CudaPipelineTest, ASendAndItsReceiveAreOneGroup) {
  fake->gpus = options.gpus = 8;
  auto executor = create(makeGpuPlan(2, 1));
  ASSERT_TRUE(executor.ok()) << executor.status();
  std::vector<std::string> calls;
  for (const std::string &call : fake->details)
    if (call.rfind("ncclGroup", 0) == 0 || call.rfind("ncclSend", 0) == 0 ||
        call.rfind("ncclRecv", 0) == 0)
      calls.push_back(call.substr(0, call.find(", rank")));
  auto first = std::find(calls.begin(), calls.end(), "ncclSend(8 bool");
  ASSERT_NE(first, calls.end());
  std::vector<std::string> expected(4, "ncclSend(8 bool");
  expected.insert(expected.end(), 4, "ncclRecv(8 bool");
  expected.insert(expected.begin(), "ncclGroupStart()");
  expected.push_back("ncclGroupEnd()");
  EXPECT_EQ(std::vector<std::string>(first - 1, first + 9), expected);
}

TEST_F(CudaPipelineTest, APeerThatDiesIsAnError) {
  options.deadline = absl::Seconds(60);
  auto said = runProcesses(
      4, makeGpuPlan(2, 2),
      [&](const Ranks &ranks,
          absl::StatusOr<std::unique_ptr<Executor>> executor) -> std::string {
        if (!executor.ok())
          return std::string(executor.status().message());
        if (ranks.rank == 3)
          _exit(0);
        return train(**executor);
      });
  EXPECT_EQ(said[3], "");
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_NE(
        said[rank].find(absl::StrCat("rank 3 on ", hostName(), " has gone")),
        std::string::npos)
        << said[rank];
}

TEST_F(CudaPipelineTest, APeerThatSendsNothingIsAnError) {
  options.deadline = absl::Seconds(2);
  setenv("SHARDC_FAKE_PATIENCE_MS", "500", 1);
  auto said = runProcesses(
      2, makeGpuPlan(2, 2),
      [&](const Ranks &ranks,
          absl::StatusOr<std::unique_ptr<Executor>> executor) -> std::string {
        if (!executor.ok())
          return std::string(executor.status().message());
        if (ranks.rank == 1) {
          sleep(6);
          _exit(0);
        }
        return train(**executor);
      });
  unsetenv("SHARDC_FAKE_PATIENCE_MS");
  EXPECT_NE(said[0].find("a run of \"train_step\""), std::string::npos)
      << said[0];
}

TEST_F(CudaPipelineTest, ProcessesHoldAsManyDevicesEach) {
  options.deadline = absl::Seconds(60);
  auto plan = makeGpuPlan(2, 1);
  auto said = runProcesses(
      3, plan,
      [&](const Ranks &, absl::StatusOr<std::unique_ptr<Executor>> executor) {
        return std::string(executor.status().message());
      });
  for (const std::string &error : said)
    EXPECT_NE(error.find("the mesh stage=2,data=2,copy=2 has 8 devices, of "
                         "which 3 processes cannot hold as many each"),
              std::string::npos)
        << error;
  // Some devices on one GPU and some on another are nobody's.
  fake->gpus = options.gpus = 2;
  EXPECT_EQ(create(plan).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CudaPipelineTest, EveryFailureIsCleanedUp) {
  auto plan = makeGpuPlan(2, 2);
  fake->gpus = options.gpus = 8;
  int64_t calls = 0;
  {
    auto executor = create(plan);
    ASSERT_TRUE(executor.ok()) << executor.status();
    calls = fake->calls.size();
  }
  for (fake->failAt = 1; fake->failAt < calls; fake->failAt += 1 + calls / 60) {
    fake->calls.clear();
    fake->details.clear();
    (void)create(plan);
    for (const auto &[kind, count] : fake->live)
      ASSERT_EQ(count, 0) << kind << ", call " << fake->failAt;
    ASSERT_EQ(fake->bytesAllocated, 0u) << "call " << fake->failAt;
  }
}
