//===- OverlapTest.cpp - Collectives in flight while devices compute ------===//

#include "TestPlan.h"
#include "ThreadRanks.h"

#include "base/Memory.h"
#include "collectives/BetweenProcesses.h"
#include "exec/CpuExecutor.h"
#include "shardc-rt/Context.h"
#include "shardc-rt/Executor.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

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

// After an error between processes nobody knows where the others are: no
// program is run any more, whichever it was in.
TEST(OverlapTest, NothingRunsAfterAnErrorBetweenProcesses) {
  auto plan = Plan::parse(makePlan(2, [](fb::PlanT &plan) {
    auto program = std::make_unique<fb::ProgramT>(*plan.programs[0]);
    program->name = "evaluate";
    plan.programs.push_back(std::move(program));
  }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  runRanks(2, [&](ThreadTransport &transport) {
    auto context = Context::create({1});
    auto executor =
        createCpuExecutor(**context, *plan, ExecutorOptions(), &transport,
                          createCollectivesBetweenProcesses(transport));
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    HostArray x(DType::F32, {12});
    ASSERT_TRUE((*executor)->step({{"x", x.view()}}).ok());
    transport.failure = absl::UnavailableError("a peer has gone");
    absl::Status first =
        (*executor)->run("evaluate", {{"x", x.view()}}).status();
    EXPECT_EQ(first.code(), absl::StatusCode::kUnavailable) << first;
    transport.failure = absl::OkStatus();
    const int sent = transport.numSent;
    for (const char *program : {"train_step", "evaluate"})
      EXPECT_EQ((*executor)->run(program, {{"x", x.view()}}).status(), first);
    EXPECT_EQ(transport.numSent, sent);
  });
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

namespace {

/// Operands and results of this process, in memory that others see or not.
struct Places {
  Places(bool areSeen, int64_t bytes) {
    bool isThere =
        areSeen ? memory.allocateVisible(bytes) : memory.allocate(bytes);
    EXPECT_TRUE(isThere);
  }
  char *take(int64_t bytes) {
    char *place = memory.get() + used;
    used += (bytes + 63) / 64 * 64;
    return place;
  }

  Memory memory;
  int64_t used = 0;
};

} // namespace

// On one host the messages of a large collective say no more than how far a
// process has come. The bits are those of a collective that sends its operands,
// for all kinds, in and out of place, with several devices of each process.
TEST(OverlapTest, LargeCollectivesOnOneHostAreReadInPlace) {
  struct Case {
    CollectiveKind kind;
    int devices, processes;
    DType dtype = DType::F32;
    bool isInPlace = false, isReduced = false;
  };
  const CollectiveKind sum = CollectiveKind::AllReduce;
  // Of 6 devices no process of two has a node.
  for (const Case &one : {Case{sum, 2, 2},
                          {sum, 3, 3, DType::F32, true},
                          {sum, 4, 2},
                          {sum, 4, 2, DType::F32, true},
                          {sum, 4, 2, DType::F32, false, true},
                          {sum, 6, 2, DType::F32, true},
                          {sum, 6, 3, DType::F32, false, true},
                          {sum, 4, 2, DType::BF16, true},
                          {CollectiveKind::ReduceScatter, 4, 2},
                          {CollectiveKind::AllGather, 4, 2},
                          {CollectiveKind::AllGather, 3, 3},
                          {CollectiveKind::CollectivePermute, 4, 2}})
    runRanks(one.processes, [&](ThreadTransport &transport) {
      transport.areOnOneHost = true;
      auto collectives = createCollectivesBetweenProcesses(transport);
      const DeviceRange local =
          devicesOfProcess(one.devices, transport.rank(), one.processes);
      const int64_t width = byteSize(one.dtype), elements = 60060;
      CollectiveTensor tensor;
      tensor.dtype = one.dtype;
      tensor.isReduced = one.isReduced;
      tensor.inShape = tensor.outShape = {elements};
      if (one.kind == CollectiveKind::AllGather)
        tensor.outShape = {elements * one.devices};
      if (one.kind == CollectiveKind::ReduceScatter)
        tensor.outShape = {elements / one.devices};
      const int64_t outBytes = numElements(tensor.outShape) * width;
      std::vector<std::vector<char>> results[2];
      for (bool areSeen : {false, true}) {
        Places places(areSeen,
                      one.devices * (elements * width + outBytes + 128));
        collectives->useMemory(places.memory);
        tensor.in.assign(one.devices, nullptr);
        tensor.out.assign(one.devices, nullptr);
        for (int64_t device = local.first; device < local.last; ++device) {
          const bool isHolder = !one.isReduced || device == local.first;
          char *in = isHolder ? places.take(elements * width) : nullptr;
          for (int64_t i = 0; in && i < elements; ++i) {
            float value = std::sin(float(i + 5 * device)) * float(device + 1);
            // Of bf16 the upper half, as small-endian machines have it.
            std::memcpy(in + i * width,
                        reinterpret_cast<char *>(&value) + 4 - width, width);
          }
          tensor.in[device] = isHolder ? in : tensor.in[local.first];
          tensor.out[device] = one.isInPlace ? in : places.take(outBytes);
        }
        CollectiveSpec spec{one.kind, Reduction::Sum, {0}, {}, {tensor}};
        if (one.kind == CollectiveKind::CollectivePermute) {
          spec.targetAxes = {0};
          for (int i = 0; i < one.devices; ++i)
            spec.sources.push_back((i + 1) % one.devices);
        }
        auto prepared =
            collectives->prepare(Mesh({{"d", one.devices}}), std::move(spec));
        ASSERT_TRUE(prepared.ok()) << prepared.status();
        transport.numSent = transport.bytesSent = 0;
        runTasks((*prepared)->start());
        runTasks(prepared->get());
        EXPECT_EQ(transport.inFlight, 0);
        if (areSeen) {
          EXPECT_EQ(transport.bytesSent, transport.numSent);
        } else {
          EXPECT_GT(transport.bytesSent, 10000);
        }
        for (int64_t device = local.first; device < local.last; ++device) {
          auto *out = static_cast<const char *>(tensor.out[device]);
          results[areSeen].emplace_back(out, out + outBytes);
        }
      }
      EXPECT_TRUE(results[0] == results[1]);
    });
}

// A process goes on when the others have read what they need, and not before:
// it may write operands and results at once.
TEST(OverlapTest, NobodyGoesOnWhileOthersRead) {
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter,
        CollectiveKind::AllGather}) {
    std::atomic<bool> hasEnded{false};
    runRanks(2, [&](ThreadTransport &transport) {
      const int own = transport.rank();
      transport.areOnOneHost = true;
      auto collectives = createCollectivesBetweenProcesses(transport);
      const int64_t elements = 60000;
      CollectiveTensor tensor;
      tensor.dtype = DType::F32;
      tensor.inShape = tensor.outShape = {elements};
      if (kind == CollectiveKind::AllGather)
        tensor.outShape = {2 * elements};
      if (kind == CollectiveKind::ReduceScatter)
        tensor.outShape = {elements / 2};
      Places places(/*areSeen=*/true, 12 * elements + 128);
      collectives->useMemory(places.memory);
      tensor.in.resize(2);
      tensor.out.resize(2);
      auto *in = reinterpret_cast<float *>(places.take(4 * elements)),
           *out = reinterpret_cast<float *>(places.take(8 * elements));
      tensor.in[own] = in;
      tensor.out[own] = out;
      std::fill_n(in, elements, float(own + 1));
      auto prepared = collectives->prepare(
          Mesh({{"d", 2}}), {kind, Reduction::Sum, {0}, {}, {tensor}});
      ASSERT_TRUE(prepared.ok()) << prepared.status();
      runTasks((*prepared)->start());
      int number = 0;
      for (PreparedCollective *round = prepared->get(); round;
           round = round->next(), ++number) {
        // Behind each exchange rank 1 gives rank 0 time to go on.
        if (own == 1)
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
        if (own == 1) {
          EXPECT_FALSE(hasEnded) << "before round " << number;
        }
        for (int64_t task = 0; task < round->numTasks(); ++task)
          EXPECT_TRUE(round->runTask(task).ok());
      }
      if (own == 0) {
        hasEnded = true;
        std::fill_n(in, elements, -1.0f);
      }
      for (int64_t i = 0; i < numElements(tensor.outShape); i += 997) {
        float expected = 3;
        if (kind == CollectiveKind::AllGather)
          expected = i < elements ? 1 : 2;
        ASSERT_EQ(out[i], expected);
      }
      std::fill_n(out, numElements(tensor.outShape), -1.0f);
    });
  }
}

// A process must not write what others still read: they are sent operands that
// overlap results, and those of groups that divide their elements differently.
TEST(OverlapTest, OperandsThatAreOverwrittenAreSent) {
  runRanks(2, [&](ThreadTransport &transport) {
    const int own = transport.rank();
    transport.areOnOneHost = true;
    auto collectives = createCollectivesBetweenProcesses(transport);
    const int64_t elements = 120000, shift = 60000;
    Places places(/*areSeen=*/true, 4 * (elements + shift) * 4);
    auto run = [&](const Mesh &mesh, const CollectiveTensor &tensor,
                   std::vector<int> axes) {
      auto prepared = collectives->prepare(
          mesh,
          {CollectiveKind::AllReduce, Reduction::Sum, axes, {}, {tensor}});
      ASSERT_TRUE(prepared.ok()) << prepared.status();
      transport.bytesSent = 0;
      runTasks((*prepared)->start());
      runTasks(prepared->get());
      EXPECT_GT(transport.bytesSent, 100000);
    };
    collectives->useMemory(places.memory);
    // In one of the processes a shifted place.
    auto *memory =
        reinterpret_cast<float *>(places.take((elements + shift) * 4));
    float *in = memory + (own == 0 ? shift : 0),
          *out = own == 0
                     ? memory
                     : reinterpret_cast<float *>(places.take(elements * 4));
    for (int64_t i = 0; i < elements; ++i)
      in[i] = float(i % 1000 + own);
    CollectiveTensor tensor{DType::F32, {elements}, {elements}, 0, -1, {}, {}};
    tensor.in.resize(2);
    tensor.out.resize(2);
    tensor.in[own] = in;
    tensor.out[own] = out;
    run(Mesh({{"d", 2}}), tensor, {0});
    for (int64_t i = 0; i < elements; ++i)
      ASSERT_EQ(out[i], float(i % 1000 * 2 + 1));

    // Devices 0 and 1, of process 0, have one operand and one result, devices
    // 2 and 3 have two: of the second group process 1 has the only new result.
    CollectiveTensor shared{DType::F32, {elements}, {elements}, 0, -1, {}, {}};
    shared.in.resize(4);
    shared.out.resize(4);
    for (int device : {2 * own, 2 * own + 1})
      if (own == 1 || device == 0) {
        auto *place = reinterpret_cast<float *>(places.take(elements * 4));
        std::fill_n(place, elements, float(device + 1));
        shared.in[device] = shared.out[device] = place;
      } else {
        shared.in[device] = shared.in[0];
        shared.out[device] = shared.out[0];
      }
    run(Mesh({{"d", 2}, {"m", 2}}), shared, {0});
    for (int device : {2 * own, 2 * own + 1})
      for (int64_t i = 0; i < elements; i += 999)
        EXPECT_EQ(static_cast<float *>(shared.out[device])[i],
                  device == 3 ? 5 : 4);
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
