//===- OverlapTest.cpp - Collectives in flight while devices compute ------===//

#include "TestPlan.h"
#include "ThreadRanks.h"

#include "collectives/BetweenProcesses.h"
#include "exec/CpuExecutor.h"
#include "shardc-rt/Context.h"
#include "shardc-rt/Executor.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// What was done, in order.
struct Events {
  std::vector<std::string> all;
  /// The numbers of collectives that were prepared together.
  std::vector<size_t> together;
  /// The operand of the all-gather on the first device.
  const float *y = nullptr;

  void add(const std::string &event) {
    all.push_back(event + (*y == 0 ? " before y" : " behind y"));
  }
};

/// In-process collectives, of which an all-reduce has something to do at its
/// start.
class StartedCollectives : public Collectives {
public:
  explicit StartedCollectives(Events &trace) : trace(trace) {}

  absl::StatusOr<std::vector<std::unique_ptr<PreparedCollective>>>
  prepareTogether(const Mesh &mesh,
                  std::vector<CollectiveSpec> specs) override {
    trace.together.push_back(specs.size());
    return Collectives::prepareTogether(mesh, std::move(specs));
  }

  absl::StatusOr<std::unique_ptr<PreparedCollective>>
  prepare(const Mesh &mesh, CollectiveSpec spec) override {
    if (spec.kind == CollectiveKind::AllGather)
      trace.y = static_cast<const float *>(spec.tensors[0].in[0]);
    bool starts = spec.kind == CollectiveKind::AllReduce;
    auto prepared = inner->prepare(mesh, std::move(spec));
    if (!prepared.ok() || !starts)
      return prepared;
    return std::make_unique<Prepared>(*std::move(prepared), trace);
  }

private:
  struct Start : PreparedCollective {
    explicit Start(Events &trace) : trace(trace) {}
    int64_t numTasks() const override { return 1; }
    absl::Status runTask(int64_t) override {
      trace.add("start");
      return absl::OkStatus();
    }
    Events &trace;
  };

  struct Prepared : PreparedCollective {
    Prepared(std::unique_ptr<PreparedCollective> inner, Events &trace)
        : inner(std::move(inner)), trace(trace), early(trace) {}
    PreparedCollective *start() override { return &early; }
    int64_t numTasks() const override { return inner->numTasks(); }
    absl::Status runTask(int64_t task) override {
      trace.add("finish");
      return inner->runTask(task);
    }
    std::unique_ptr<PreparedCollective> inner;
    Events &trace;
    Start early;
  };

  Events &trace;
  std::unique_ptr<Collectives> inner = createInProcessCollectives();
};

/// A tensor of a collective over all devices with its memory in this process.
struct Tensor {
  Tensor(int64_t devices, int own, int64_t inSize, int64_t outSize)
      : in(devices), out(devices) {
    tensor.dtype = DType::F32;
    tensor.inShape = {inSize};
    tensor.outShape = {outSize};
    tensor.in.resize(devices);
    tensor.out.resize(devices);
    in[own].resize(inSize);
    out[own].resize(outSize);
    tensor.in[own] = in[own].data();
    tensor.out[own] = out[own].data();
  }

  CollectiveTensor tensor;
  std::vector<std::vector<float>> in, out;
};

} // namespace

TEST(OverlapTest, DevicesComputeBetweenStartAndFinish) {
  for (int devices : {1, 2, 3})
    for (int threads : {1, 2}) {
      Events trace;
      auto context = Context::create({threads});
      auto plan = Plan::parse(makePlan(devices, addEarlyAllReduce));
      ASSERT_TRUE(plan.ok()) << plan.status();
      auto executor =
          createCpuExecutor(**context, *plan, ExecutorOptions(), nullptr,
                            std::make_unique<StartedCollectives>(trace));
      ASSERT_TRUE(executor.ok()) << executor.status();
      ASSERT_TRUE((*executor)->initializeParameters().ok());
      HostArray x(DType::F32, {12});
      std::fill(x.values<float>().begin(), x.values<float>().end(), 1.0f);
      ASSERT_TRUE((*executor)->step({{"x", x.view()}}).ok());
      // The first is that of the edit; the second sums what was gathered.
      EXPECT_EQ(trace.all, (std::vector<std::string>{
                               "start before y", "finish behind y",
                               "start behind y", "finish behind y"}));
    }
}

// MPI moves messages while it is called: worker 0 does so while a launch runs
// below a collective, and never while nothing is in flight.
TEST(OverlapTest, MessagesMoveWhileDevicesCompute) {
  for (bool isEarly : {false, true})
    for (int size : {2, 3})
      runRanks(size, [&](ThreadTransport &transport) {
        auto context = Context::create({1});
        auto plan = Plan::parse(makePlan(size, [&](fb::PlanT &edited) {
          if (isEarly)
            addEarlyAllReduce(edited);
        }));
        ASSERT_TRUE(plan.ok()) << plan.status();
        auto executor =
            createCpuExecutor(**context, *plan, ExecutorOptions(), &transport,
                              createCollectivesBetweenProcesses(transport));
        ASSERT_TRUE(executor.ok()) << executor.status();
        ASSERT_TRUE((*executor)->initializeParameters().ok());
        HostArray x(DType::F32, {12});
        ASSERT_TRUE((*executor)->step({{"x", x.view()}}).ok());
        // The early one has one launch above it, others end where they start.
        EXPECT_EQ(transport.numProgressed, isEarly ? 1 : 0);
      });
}

TEST(OverlapTest, StartsWithNothingInBetweenArePreparedTogether) {
  Events trace;
  auto context = Context::create({1});
  auto plan = Plan::parse(makePlan(2, [](fb::PlanT &edited) {
    addEarlyAllReduce(edited);
    addEarlyAllReduce(edited);
  }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto executor =
      createCpuExecutor(**context, *plan, ExecutorOptions(), nullptr,
                        std::make_unique<StartedCollectives>(trace));
  ASSERT_TRUE(executor.ok()) << executor.status();
  EXPECT_EQ(trace.together, (std::vector<size_t>{2, 1, 1}));
}

// Their operands are one message for each other process.
TEST(OverlapTest, SmallCollectivesThatStartTogetherShareMessages) {
  for (int size : {2, 3})
    runRanks(size, [&](ThreadTransport &transport) {
      const int own = transport.rank();
      auto collectives = createCollectivesBetweenProcesses(transport);
      Tensor sum(size, own, 30, 30), gathered(size, own, 10, size * 10),
          large(size, own, 20000, 20000);
      auto specOf = [](CollectiveKind kind, const Tensor &of) {
        return CollectiveSpec{kind, Reduction::Sum, {0}, {}, {of.tensor}};
      };
      auto all = collectives->prepareTogether(
          Mesh({{"d", size}}), {specOf(CollectiveKind::AllReduce, large),
                                specOf(CollectiveKind::AllReduce, sum),
                                specOf(CollectiveKind::AllGather, gathered)});
      ASSERT_TRUE(all.ok()) << all.status();
      for (const std::vector<int> &order :
           {std::vector<int>{0, 1, 2}, {2, 0, 1}}) {
        for (Tensor *tensor : {&sum, &gathered, &large})
          tensor->in[own].assign(tensor->in[own].size(), own + order[0]);
        transport.numSent = 0;
        for (const auto &one : *all)
          runTasks(one->start());
        // One of the large one, one of both others.
        EXPECT_EQ(transport.numSent, 2 * (size - 1));
        for (int number : order)
          runTasks((*all)[number].get());
        EXPECT_EQ(transport.numSent, 3 * (size - 1));
        float expected = size * (size - 1) / 2 + size * order[0];
        EXPECT_EQ(sum.out[own], std::vector<float>(30, expected));
        EXPECT_EQ(large.out[own], std::vector<float>(20000, expected));
        for (int64_t i = 0; i < size * 10; ++i)
          EXPECT_EQ(gathered.out[own][i], i / 10 + order[0]);
      }
    });
}

// An all-reduce of few bytes has one message for each other process, another
// one two: operands and sums. Both add in the order of the devices.
TEST(OverlapTest, SmallAllReducesTakeOneRoundOfMessages) {
  for (auto [elements, rounds] : {std::pair(200, 1), std::pair(20000, 2)})
    for (int size : {2, 3})
      runRanks(size, [&, elements = elements,
                      rounds = rounds](ThreadTransport &transport) {
        const int own = transport.rank();
        auto collectives = createCollectivesBetweenProcesses(transport);
        Tensor tensor(size, own, elements, elements);
        const float values[] = {1e8f, 1.0f, -1e8f};
        std::fill(tensor.in[own].begin(), tensor.in[own].end(), values[own]);
        auto prepared = collectives->prepare(Mesh({{"d", size}}),
                                             {CollectiveKind::AllReduce,
                                              Reduction::Sum,
                                              {0},
                                              {},
                                              {tensor.tensor}});
        ASSERT_TRUE(prepared.ok()) << prepared.status();
        transport.numSent = transport.numReceived = 0;
        runTasks((*prepared)->start());
        runTasks(prepared->get());
        EXPECT_EQ(transport.numSent, rounds * (size - 1));
        EXPECT_EQ(transport.numReceived, rounds * (size - 1));
        float expected = values[0] + values[1];
        if (size == 3)
          expected += values[2];
        EXPECT_EQ(tensor.out[own], std::vector<float>(elements, expected));
      });
}

// On one host a large all-reduce is done in pieces of about 2 MiB, of tensors
// of any sizes, with the bits of one that is not.
TEST(OverlapTest, LargeAllReducesOnOneHostAreDoneInPieces) {
  for (int size : {2, 3})
    for (bool isInPlace : {false, true})
      runRanks(size, [&](ThreadTransport &transport) {
        const int own = transport.rank();
        auto collectives = createCollectivesBetweenProcesses(transport);
        auto fill = [&](std::vector<Tensor> &tensors) {
          for (size_t t = 0; t < tensors.size(); ++t)
            for (size_t i = 0; i < tensors[t].in[own].size(); ++i)
              tensors[t].in[own][i] =
                  std::sin(float(i + 7 * t)) * float(own * own + 1);
        };
        std::vector<std::vector<float>> results[2];
        for (bool inPieces : {false, true}) {
          std::vector<Tensor> tensors;
          CollectiveSpec spec{
              CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {}};
          for (int64_t elements : {7, 2000003, 300, 400000, 1})
            tensors.emplace_back(size, own, elements, elements);
          for (Tensor &tensor : tensors) {
            if (isInPlace)
              tensor.tensor.out[own] = tensor.in[own].data();
            spec.tensors.push_back(tensor.tensor);
          }
          transport.areOnOneHost = inPieces;
          auto prepared = collectives->prepare(Mesh({{"d", size}}), spec);
          ASSERT_TRUE(prepared.ok()) << prepared.status();
          for (int run = 0; run < 2; ++run) {
            fill(tensors);
            const int before = transport.numSent;
            runTasks((*prepared)->start());
            runTasks(prepared->get());
            // 9.6 MB: a piece has operands and sums for each of the others.
            if (inPieces) {
              EXPECT_GE(transport.numSent - before, 4 * 2 * (size - 1));
            }
          }
          EXPECT_EQ(transport.inFlight, 0);
          for (Tensor &tensor : tensors)
            results[inPieces].push_back(isInPlace ? tensor.in[own]
                                                  : tensor.out[own]);
        }
        EXPECT_TRUE(results[0] == results[1]);
      });
}

// Several devices of each process: those that are a node of the tree are
// reduced before their piece, or have been, and results are copied to all.
TEST(OverlapTest, PiecesHaveTheOperandsOfAllDevices) {
  struct Case {
    int devices, processes;
    DType dtype;
    bool isInPlace, isReduced;
  };
  // Of 6 devices no process of two has a node.
  for (const Case &one : {Case{4, 2, DType::F32, false, false},
                          {4, 2, DType::F32, true, false},
                          {4, 2, DType::F32, false, true},
                          {6, 2, DType::F32, true, false},
                          {6, 3, DType::F32, false, true},
                          {4, 2, DType::BF16, true, false}})
    runRanks(one.processes, [&](ThreadTransport &transport) {
      auto collectives = createCollectivesBetweenProcesses(transport);
      const DeviceRange local =
          devicesOfProcess(one.devices, transport.rank(), one.processes);
      const int64_t elements = 3000001;
      const size_t bytes = elements * byteSize(one.dtype);
      std::vector<std::vector<char>> results[2];
      for (bool inPieces : {false, true}) {
        transport.areOnOneHost = inPieces;
        std::vector<std::vector<char>> in(one.devices), out(one.devices);
        CollectiveTensor tensor;
        tensor.dtype = one.dtype;
        tensor.inShape = tensor.outShape = {elements};
        tensor.in.resize(one.devices);
        tensor.out.resize(one.devices);
        tensor.isReduced = one.isReduced;
        for (int64_t device = local.first; device < local.last; ++device) {
          const int64_t holder = one.isReduced ? local.first : device;
          if (holder == device) {
            in[device].resize(bytes);
            for (int64_t i = 0; i < elements; ++i) {
              float value = std::sin(float(i + 5 * device)) * float(device + 1);
              if (one.dtype == DType::F32)
                std::memcpy(&in[device][4 * i], &value, 4);
              else // The upper half, as small-endian machines have it.
                std::memcpy(&in[device][2 * i],
                            reinterpret_cast<char *>(&value) + 2, 2);
            }
          }
          out[device].resize(bytes);
          tensor.in[device] = in[holder].data();
          tensor.out[device] =
              one.isInPlace ? in[device].data() : out[device].data();
        }
        auto prepared = collectives->prepare(
            Mesh({{"d", one.devices}}),
            {CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {tensor}});
        ASSERT_TRUE(prepared.ok()) << prepared.status();
        const int before = transport.numSent;
        runTasks((*prepared)->start());
        runTasks(prepared->get());
        EXPECT_EQ(transport.inFlight, 0);
        if (inPieces) {
          EXPECT_GE(transport.numSent - before, 2 * 2);
        }
        for (int64_t device = local.first; device < local.last; ++device)
          results[inPieces].push_back(one.isInPlace ? in[device] : out[device]);
      }
      EXPECT_TRUE(results[0] == results[1]);
      for (const std::vector<char> &result : results[1])
        EXPECT_TRUE(result == results[1][0]);
    });
}

// What overlaps at another place would be overwritten by a piece before it.
TEST(OverlapTest, AnAllReduceIntoAShiftedPlaceIsDoneAtOnce) {
  runRanks(2, [&](ThreadTransport &transport) {
    const int own = transport.rank();
    const int64_t elements = 1200000, shift = 600000;
    auto collectives = createCollectivesBetweenProcesses(transport);
    transport.areOnOneHost = true;
    Tensor tensor(2, own, elements + shift, 0);
    std::vector<float> &memory = tensor.in[own];
    tensor.tensor.inShape = tensor.tensor.outShape = {elements};
    // In one of the processes.
    std::vector<float> apart(elements);
    tensor.tensor.in[own] = memory.data() + (own == 0 ? shift : 0);
    tensor.tensor.out[own] = own == 0 ? memory.data() : apart.data();
    for (int64_t i = 0; i < elements; ++i)
      memory[i + (own == 0 ? shift : 0)] = float(i % 1000 + own);
    CollectiveSpec spec{
        CollectiveKind::AllReduce, Reduction::Sum, {0}, {}, {tensor.tensor}};
    auto prepared = collectives->prepare(Mesh({{"d", 2}}), spec);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    transport.numSent = 0;
    runTasks((*prepared)->start());
    runTasks(prepared->get());
    EXPECT_EQ(transport.numSent, 2);
    const float *result = static_cast<float *>(tensor.tensor.out[own]);
    for (int64_t i = 0; i < elements; ++i)
      ASSERT_EQ(result[i], float(i % 1000 * 2 + 1));
  });
}

// Each has messages of its own, so that they may be finished in any order; and
// memory that is used again.
TEST(OverlapTest, CollectivesBetweenProcessesAreFinishedInAnyOrder) {
  for (int size : {2, 3})
    runRanks(size, [&](ThreadTransport &transport) {
      const int own = transport.rank();
      Mesh mesh({{"d", size}});
      auto collectives = createCollectivesBetweenProcesses(transport);
      const int64_t part = 10000; // messages of their own, and bundles
      Tensor sum(size, own, 300, 300), gathered(size, own, part, size * part),
          scattered(size, own, size * part, part);
      auto prepare = [&](CollectiveKind kind, const Tensor &of) {
        CollectiveSpec spec{kind, Reduction::Sum, {0}, {}, {of.tensor}};
        auto prepared = collectives->prepare(mesh, std::move(spec));
        EXPECT_TRUE(prepared.ok()) << prepared.status();
        return *std::move(prepared);
      };
      std::unique_ptr<PreparedCollective> all[] = {
          prepare(CollectiveKind::AllReduce, sum),
          prepare(CollectiveKind::AllGather, gathered),
          prepare(CollectiveKind::ReduceScatter, scattered)};
      for (const std::vector<int> &order :
           {std::vector<int>{2, 0, 1}, {0, 1, 2}, {1, 2, 0}}) {
        for (Tensor *tensor : {&sum, &gathered, &scattered})
          std::fill(tensor->out[own].begin(), tensor->out[own].end(), -1.0f);
        for (Tensor *tensor : {&sum, &gathered, &scattered})
          for (size_t i = 0; i < tensor->in[own].size(); ++i)
            tensor->in[own][i] = own * 1000 + i % 7 + order[0];
        for (const auto &one : all)
          runTasks(one->start());
        EXPECT_EQ(transport.inFlight, 3);
        for (int number : order)
          runTasks(all[number].get());
        EXPECT_EQ(transport.inFlight, 0);
        auto sumAt = [&](int64_t i) {
          return 1000 * size * (size - 1) / 2 + size * (i % 7 + order[0]);
        };
        for (int64_t i = 0; i < 300; ++i)
          ASSERT_EQ(sum.out[own][i], sumAt(i));
        for (int64_t i = 0; i < size * part; ++i)
          ASSERT_EQ(gathered.out[own][i],
                    i / part * 1000 + i % part % 7 + order[0]);
        for (int64_t i = 0; i < part; ++i)
          ASSERT_EQ(scattered.out[own][i], sumAt(own * part + i));
      }
    });
}
