//===- ReplicationAnalysisTest.cpp - Sharing between virtual devices ------===//

#include "MatrixPlan.h"

#include "exec/ArenaLayout.h"
#include "exec/MergeGemms.h"
#include "shardc-rt/Executor.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace shardc::rt;
using test::makePlan;

namespace {

std::shared_ptr<const Plan> parse(const std::string &bytes) {
  auto plan = Plan::parse(bytes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

/// `plan` with a kernel, launched by `command`, that reads no coordinates.
std::shared_ptr<const Plan> withoutCoordinates(const Plan &plan,
                                               size_t command) {
  PlanSpec edited = plan.spec();
  std::get<LaunchCommand>(edited.programs[0].commands[command].operation)
      .parts[0]
      .coordinateAxes.clear();
  return makeUnverifiedPlan(std::move(edited));
}

/// The layout of a plan without a pipeline.
ArenaLayout layoutOf(const Plan &plan, bool share) {
  auto layouts = ArenaLayout::create(plan.spec(), share);
  EXPECT_TRUE(layouts.ok());
  return layouts->front();
}

/// Buffers of the test plan.
enum Buffers : uint32_t { X, W, M, Y, All, G, H, Loss };

TEST(ReplicationAnalysisTest, FollowsValuesThroughTheProgram) {
  auto plan = withoutCoordinates(*parse(makePlan(4)), 6);
  ArenaLayout layout = layoutOf(*plan, /*share=*/true);
  for (uint32_t sharded : {X, Y})
    EXPECT_EQ(layout.holdersOf(0, sharded).size(), 4u) << sharded;
  for (uint32_t replicated : {W, M, All, G, H, Loss})
    EXPECT_EQ(layout.holdersOf(0, replicated).size(), 1u) << replicated;
  // Copies of a value are contiguous, x and y of 3 floats each.
  for (int64_t device = 0; device < 4; ++device)
    EXPECT_EQ(layout.offsetOf(0, Y, device),
              layout.offsetOf(0, Y, 0) + device * plan->spec().alignment);
  EXPECT_EQ(layout.bytes(),
            plan->arenaBytes() + 2 * 3 * plan->spec().alignment);

  ArenaLayout apart = layoutOf(*plan, /*share=*/false);
  for (uint32_t buffer : {X, W, M, Y, All, G, H, Loss})
    EXPECT_EQ(apart.holdersOf(0, buffer).size(), 4u) << buffer;
  EXPECT_EQ(apart.bytes(), 4 * plan->arenaBytes());
}

TEST(ReplicationAnalysisTest,
     NeverPutsTwoValuesThatLiveTogetherOnTheSameBytes) {
  for (int devices : {1, 2, 3, 5, 8})
    for (bool share : {false, true}) {
      auto plan = parse(makePlan(devices));
      ArenaLayout layout = layoutOf(*plan, share);
      // The buffers of the test plan never reuse bytes.
      std::vector<ByteRange> taken;
      for (uint32_t buffer : {X, W, M, Y, All, G, H, Loss})
        for (int64_t device : layout.holdersOf(0, buffer)) {
          uint64_t begin = layout.offsetOf(0, buffer, device);
          ByteRange bytes{
              begin, begin + plan->spec().programs[0].buffers[buffer].bytes};
          EXPECT_LE(bytes.end, layout.bytes());
          for (ByteRange other : taken)
            EXPECT_FALSE(overlap(bytes, other)) << buffer;
          taken.push_back(bytes);
        }
    }
}

TEST(ReplicationAnalysisTest, AKernelThatReadsNoCoordinatesMakesNoDifference) {
  auto edit = [](fb::PlanT &plan) {
    fb::LaunchT *scale = plan.programs[0]->commands[0]->operation.AsLaunch();
    scale->buffers[0] = G;
    scale->buffers[1] = All;
    scale->extent = 12;
  };
  // `all` is written by the kernel as well: with coordinates it differs, and so
  // do the values computed from it.
  auto plan = parse(makePlan(4, edit));
  EXPECT_EQ(layoutOf(*plan, true).holdersOf(0, All).size(), 4u);
  auto without = withoutCoordinates(*plan, 0);
  EXPECT_EQ(layoutOf(*without, true).holdersOf(0, All).size(), 1u);
}

/// Adds to the step the GEMM of y and x, seen as matrices of `columns`
/// columns and rows, whose sum over devices is the result "sum".
std::function<void(fb::PlanT &)> withSum(int64_t columns,
                                         fb::CollectiveKind kind) {
  return [=](fb::PlanT &plan) {
    fb::ProgramT &program = *plan.programs[0];
    int64_t shard = program.buffers[Y]->shape[0];
    int64_t devices = plan.mesh->axes[0]->size;
    auto buffer = [&](std::vector<int64_t> shape) {
      auto added = std::make_unique<fb::BufferT>();
      added->offset = plan.arena_bytes;
      added->bytes = 4;
      for (int64_t size : shape)
        added->bytes *= size;
      plan.arena_bytes += (added->bytes + 63) / 64 * 64;
      added->shape = std::move(shape);
      program.buffers.push_back(std::move(added));
      return uint32_t(program.buffers.size() - 1);
    };
    bool scatters = kind == fb::CollectiveKind::ReduceScatter;
    int64_t rows = scatters ? (columns + devices - 1) / devices : columns;
    uint32_t c = buffer({columns, columns}), sum = buffer({rows, columns});
    auto add = [&](auto table) {
      auto command = std::make_unique<fb::CommandT>();
      command->operation.Set(std::move(table));
      program.commands.push_back(std::move(command));
    };
    fb::GemmT gemm;
    gemm.a = Y;
    gemm.b = X;
    gemm.c = c;
    gemm.m = gemm.n = columns;
    gemm.k = shard / columns;
    add(gemm);
    fb::CollectiveStartT start;
    start.kind = kind;
    start.axes = {0};
    auto item = std::make_unique<fb::CollectiveItemT>();
    item->in = c;
    item->out = sum;
    start.items.push_back(std::move(item));
    fb::CollectiveWaitT wait;
    wait.start = program.commands.size();
    add(std::move(start));
    add(wait);
    auto result = std::make_unique<fb::ResultT>();
    result->name = "sum";
    result->buffer = sum;
    result->shape = {columns, columns};
    result->sharding = std::make_unique<fb::ShardingT>();
    for (int dim = 0; dim < 2; ++dim) {
      auto axes = std::make_unique<fb::DimShardingT>();
      if (scatters && dim == 0)
        axes->axes = {0};
      result->sharding->dims.push_back(std::move(axes));
    }
    program.results.push_back(std::move(result));
  };
}

class SumTest
    : public testing::TestWithParam<
          std::tuple<std::pair<int, int64_t>, fb::CollectiveKind, int>> {};

TEST_P(SumTest, IsTheSameWhereverItIsComputed) {
  auto [sizes, kind, threads] = GetParam();
  auto [devices, columns] = sizes;
  auto plan = parse(makePlan(devices, withSum(columns, kind)));
  HostArray x(DType::F32, {12});
  for (int i = 0; i < 12; ++i)
    x.values<float>()[i] = float(i);
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  auto run = [&](bool share) {
    ExecutorOptions options;
    options.shareReplicas = share;
    auto executor = Executor::create(**context, plan, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    EXPECT_TRUE((*executor)->initializeParameters().ok());
    auto result = (*executor)->step({{"x", x.view()}});
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  };
  RunResult shared = run(true), apart = run(false);
  // Small whole numbers: exact in any order.
  int64_t shard = 12 / devices, k = shard / columns;
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float expected = 0;
      for (int64_t device = 0; device < devices; ++device)
        for (int64_t l = 0; l < k; ++l) {
          float a = float(device * shard + i * k + l);
          expected +=
              (2 * a + float(device)) * float(device * shard + l * columns + j);
        }
      EXPECT_EQ(shared.find("sum")->values<float>()[i * columns + j], expected);
      EXPECT_EQ(apart.find("sum")->values<float>()[i * columns + j], expected);
    }
  EXPECT_EQ(shared.wireBytes, apart.wireBytes);
  EXPECT_EQ(shared.loss, apart.loss);
}

TEST_P(SumTest, HasTheBitsOfTheTreeIfItIsOrdered) {
  auto [sizes, kind, threads] = GetParam();
  auto [devices, columns] = sizes;
  auto plan = parse(makePlan(devices, withSum(columns, kind)));
  HostArray x(DType::F32, {12});
  for (int i = 0; i < 12; ++i)
    x.values<float>()[i] = std::sin(float(i)) * float(1 << i);
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  // Collectives add if each device has memory of its own.
  std::vector<HostArray> sums;
  for (bool share : {false, true}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    options.orderedSums = true;
    auto executor = Executor::create(**context, plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    auto result = (*executor)->step({{"x", x.view()}});
    ASSERT_TRUE(result.ok()) << result.status();
    sums.push_back(*result->find("sum"));
  }
  EXPECT_EQ(0, std::memcmp(sums[0].values<float>().data(),
                           sums[1].values<float>().data(),
                           columns * columns * sizeof(float)));
}

TEST(OrderedSumTest, GemmsAddWhatIsANodeOfTheTree) {
  auto plan = parse(makePlan(6, withSum(1, fb::CollectiveKind::AllReduce)));
  const ProgramSpec &program = plan->spec().programs[0];
  // The last one.
  uint32_t gemm = program.commands.size() - 1;
  while (!std::holds_alternative<GemmCommand>(program.commands[gemm].operation))
    --gemm;
  auto termsOf = [&](int process, int processes) {
    LayoutOptions options;
    options.process = process;
    options.processes = processes;
    auto layouts = ArenaLayout::create(plan->spec(), options);
    EXPECT_TRUE(layouts.ok()) << layouts.status();
    const ArenaLayout &layout = layouts->front();
    return layout.termsOf(
        0, gemm,
        layout.devicesFor(0, operandsOf(program, program.commands[gemm])));
  };
  using Terms = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(termsOf(0, 1), (Terms{{0, 1, 2, 3, 4, 5}}));
  // Of ((0 1) (2 3)) (4 5) two processes have 0 to 2 and 3 to 5: no nodes.
  EXPECT_EQ(termsOf(1, 2), (Terms{{3}, {4}, {5}}));
  EXPECT_EQ(termsOf(1, 3), (Terms{{2, 3}}));
  EXPECT_EQ(termsOf(2, 6), (Terms{{2}}));
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, SumTest,
    testing::Combine(testing::ValuesIn(std::vector<std::pair<int, int64_t>>{
                         {1, 1},
                         {1, 2},
                         {1, 3},
                         {2, 1},
                         {2, 2},
                         {2, 3},
                         {3, 1},
                         {3, 2},
                         {4, 1},
                         {4, 3},
                         {6, 1},
                         {6, 2}}),
                     testing::Values(fb::CollectiveKind::AllReduce,
                                     fb::CollectiveKind::ReduceScatter),
                     testing::Values(1, 2, 3)));

/// The sum over devices of c = aᵀ b, over the rows of two runs of a loop as
/// well: `c` is cleared, and a GEMM of the loop adds to it by another name.
struct LoopSum {
  fb::PlanT &plan;
  uint32_t c = 0, added = 0; ///< The two names.
  uint32_t gemm = 0;         ///< The command.

  static constexpr int64_t rows = 4, runs = 2, m = 6;

  LoopSum(fb::PlanT &plan, int devices, int64_t n) : plan(plan) {
    const int64_t k = devices * runs * rows;
    uint32_t a = test::addParameter(plan, "a", {k, m}, {{0}, {}});
    uint32_t b = test::addParameter(plan, "b", {k, n}, {{0}, {}});
    auto &buffers = plan.programs[0]->buffers;
    auto &commands = plan.programs[0]->commands;
    c = test::addOwnBuffer(plan, fb::DType::F32, {m, n});
    added = buffers.size();
    buffers.push_back(std::make_unique<fb::BufferT>(*buffers[c]));
    test::addClear(plan, c);
    fb::GemmT command;
    command.a = test::addRowsOfRun(plan, a, rows);
    command.b = test::addRowsOfRun(plan, b, rows);
    command.c = added;
    command.m = m, command.n = n, command.k = rows;
    command.transpose_a = command.accumulate = true;
    test::addCommand(plan, command);
    test::addLoop(plan, commands.size() - 1, runs);
    gemm = commands.size() - 1;
  }

  void reduce(fb::CollectiveKind kind, int dim, int devices) {
    std::vector<int64_t> whole = plan.programs[0]->buffers[c]->shape;
    std::vector<int64_t> part = whole;
    std::vector<std::vector<uint16_t>> axes(2);
    if (kind == fb::CollectiveKind::ReduceScatter) {
      part[dim] = (part[dim] + devices - 1) / devices;
      axes[dim] = {0};
    }
    uint32_t sum = test::addCollective(plan, kind, c, part, dim);
    test::addResult(plan, "sum", test::addCopyOf(plan, sum), whole, axes);
  }
};

class LoopSumTest
    : public testing::TestWithParam<
          std::tuple<int, std::pair<fb::CollectiveKind, int>, int>> {};

TEST_P(LoopSumTest, IsOneValueOfAllDevices) {
  auto [devices, kindAndDim, threads] = GetParam();
  auto [kind, dim] = kindAndDim;
  constexpr int64_t m = LoopSum::m;
  const int64_t n = 32 * devices;
  uint32_t c = 0, gemm = 0;
  auto plan = parse(makePlan(
      devices, [&, kind = kind, dim = dim, devices = devices](fb::PlanT &plan) {
        LoopSum sum(plan, devices, n);
        c = sum.c, gemm = sum.gemm;
        sum.reduce(kind, dim, devices);
      }));
  ArenaLayout layout = layoutOf(*plan, /*share=*/true);
  EXPECT_EQ(layout.holdersOf(0, c).size(), 1u);
  EXPECT_EQ(layout.isSummed(0, c), devices > 1);
  EXPECT_EQ(layout.termsOf(0, gemm, {0})[0].size(), size_t(devices));
  const int64_t k = devices * LoopSum::runs * LoopSum::rows;
  HostArray x(DType::F32, {12}), a(DType::F32, {k, m}), b(DType::F32, {k, n});
  // Small whole numbers: exact in any order.
  for (int64_t i = 0; i < k * m; ++i)
    a.values<float>()[i] = float(i * 7 % 11 - 5);
  for (int64_t i = 0; i < k * n; ++i)
    b.values<float>()[i] = float(i * 5 % 13 - 6);
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  uint64_t wireBytes[2];
  for (auto [share, ordered] : {std::pair(false, false), std::pair(true, false),
                                std::pair(true, true)}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    options.orderedSums = ordered;
    auto executor = Executor::create(**context, plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    ASSERT_TRUE((*executor)->setTensor("a", a.view()).ok());
    ASSERT_TRUE((*executor)->setTensor("b", b.view()).ok());
    for (int step = 0; step < 2; ++step) {
      auto result = (*executor)->step({{"x", x.view()}});
      ASSERT_TRUE(result.ok()) << result.status();
      wireBytes[share] = result->wireBytes;
      const HostArray &sum = *result->find("sum");
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          float expected = 0;
          for (int64_t l = 0; l < k; ++l)
            expected +=
                a.values<float>()[l * m + i] * b.values<float>()[l * n + j];
          ASSERT_EQ(sum.values<float>()[i * n + j], expected) << i << ", " << j;
        }
    }
  }
  EXPECT_EQ(wireBytes[0], wireBytes[1]);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, LoopSumTest,
    testing::Combine(
        testing::Values(1, 2, 3),
        testing::Values(std::pair(fb::CollectiveKind::AllReduce, 0),
                        std::pair(fb::CollectiveKind::ReduceScatter, 0),
                        std::pair(fb::CollectiveKind::ReduceScatter, 1)),
        testing::Values(1, 2)));

/// What a program does besides with such a value.
struct LoopSumUse {
  const char *name;
  bool isSummed;
  std::function<void(LoopSum &)> edit;
};

void PrintTo(const LoopSumUse &use, std::ostream *out) { *out << use.name; }

class LoopSumUseTest : public testing::TestWithParam<LoopSumUse> {};

TEST_P(LoopSumUseTest, DecidesWhetherItIsASum) {
  uint32_t c = 0;
  const std::string bytes = makePlan(2, [&](fb::PlanT &plan) {
    LoopSum sum(plan, 2, 64);
    c = sum.c;
    sum.reduce(fb::CollectiveKind::AllReduce, 0, 2);
    GetParam().edit(sum);
  });
  auto plan = parse(bytes);
  EXPECT_EQ(layoutOf(*plan, /*share=*/true).isSummed(0, c),
            GetParam().isSummed);
  test::expectBitsAndBytesOfCopies(bytes, "sum", /*threads=*/2,
                                   /*orderedSums=*/true);
}

INSTANTIATE_TEST_SUITE_P(
    Uses, LoopSumUseTest,
    testing::Values(
        LoopSumUse{"a loop adds to it", true, [](LoopSum &) {}},
        LoopSumUse{
            "a second GEMM adds to it", true,
            [](LoopSum &sum) {
              auto &commands = sum.plan.programs[0]->commands;
              fb::GemmT again = *commands[sum.gemm]->operation.AsGemm();
              test::addCommand(sum.plan, again);
              test::moveLast(sum.plan, sum.gemm + 1);
              ++commands[sum.gemm - 1]->operation.AsLoop()->commands;
              commands[sum.gemm + 3]->operation.AsCollectiveWait()->start =
                  sum.gemm + 2;
            }},
        LoopSumUse{
            "a GEMM with a relu computes it", false,
            [](LoopSum &sum) {
              fb::GemmT &gemm =
                  *sum.plan.programs[0]->commands[sum.gemm]->operation.AsGemm();
              gemm.activation = fb::Activation::Relu;
            }},
        LoopSumUse{"it is copied", false,
                   [](LoopSum &sum) { test::addCopyOf(sum.plan, sum.c); }},
        LoopSumUse{"it is a result", false,
                   [](LoopSum &sum) {
                     test::addResult(sum.plan, "c", sum.c, {LoopSum::m, 64});
                   }},
        LoopSumUse{"a second reduction reads it", false,
                   [](LoopSum &sum) {
                     test::addCollective(sum.plan,
                                         fb::CollectiveKind::AllReduce, sum.c,
                                         {LoopSum::m, 64}, 0);
                   }},
        LoopSumUse{
            "it begins at another value", false, [](LoopSum &sum) {
              fb::CopyT copy;
              copy.in = test::addOwnBuffer(sum.plan, fb::DType::F32,
                                           {LoopSum::m, 64});
              copy.out = sum.c;
              auto &commands = sum.plan.programs[0]->commands;
              commands[sum.gemm - 2]->operation.Set(copy);
              // Of which nothing is known but that it is zero.
              test::addClear(sum.plan, copy.in);
              test::moveLast(sum.plan, sum.gemm - 2);
              commands[sum.gemm + 3]->operation.AsCollectiveWait()->start =
                  sum.gemm + 2;
            }}));

/// c = x w of the rows of two microbatches, of which each device has others.
TEST(MergeGemmsTest, RowsOfMicrobatchesAreOneGemm) {
  constexpr int64_t devices = 3, runs = 2, rows = 2, k = 5, n = 40;
  auto plan = parse(makePlan(devices, [&](fb::PlanT &plan) {
    uint32_t x =
        test::addParameter(plan, "in", {devices * runs * rows, k}, {{0}, {}});
    uint32_t w = test::addParameter(plan, "weight", {k, n}, {{}, {}});
    uint32_t c = test::addOwnBuffer(plan, fb::DType::F32, {runs * rows, n});
    fb::GemmT gemm;
    gemm.a = test::addRowsOfRun(plan, x, rows);
    gemm.b = w;
    gemm.c = test::addOwnBuffer(plan, fb::DType::F32, {rows, n});
    gemm.m = rows, gemm.n = n, gemm.k = k;
    test::addCommand(plan, gemm);
    fb::CopyT copy;
    copy.in = gemm.c;
    copy.out = test::addRowsOfRun(plan, c, rows);
    test::addCommand(plan, copy);
    test::addLoopFrom(plan, test::firstAddedCommand);
    test::addResult(plan, "c", c, {devices * runs * rows, n}, {{0}, {}});
  }));
  HostArray x(DType::F32, {12}), in(DType::F32, {devices * runs * rows, k}),
      weight(DType::F32, {k, n});
  for (size_t i = 0; i < in.values<float>().size(); ++i)
    in.values<float>()[i] = float(i * 7 % 11) - 5;
  for (size_t i = 0; i < weight.values<float>().size(); ++i)
    weight.values<float>()[i] = float(i * 5 % 13) - 6;
  for (int threads : {1, 2}) {
    auto context = Context::create({threads});
    ASSERT_TRUE(context.ok());
    auto executor = Executor::create(**context, plan, {});
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    ASSERT_TRUE((*executor)->setTensor("in", in.view()).ok());
    ASSERT_TRUE((*executor)->setTensor("weight", weight.view()).ok());
    auto result = (*executor)->step({{"x", x.view()}});
    ASSERT_TRUE(result.ok()) << result.status();
    const HostArray &c = *result->find("c");
    for (int64_t i = 0; i < devices * runs * rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float expected = 0;
        for (int64_t l = 0; l < k; ++l)
          expected +=
              in.values<float>()[i * k + l] * weight.values<float>()[l * n + j];
        ASSERT_EQ(c.values<float>()[i * n + j], expected) << i << ", " << j;
      }
  }
}

/// Adds to the step a launch of "test_triple" on x, and the all-reduce of its
/// results, over the axes `axes`, as the result "sum". Another kernel adds up
/// those of `devices` devices. With `hasLoop` each run has one element.
std::function<void(fb::PlanT &)> withSummedLaunch(int devices,
                                                  std::vector<uint16_t> axes,
                                                  bool hasLoop = false) {
  return [=](fb::PlanT &plan) {
    fb::ProgramT &program = *plan.programs[0];
    const std::vector<int64_t> all = program.buffers[X]->shape;
    const uint32_t total = test::addOwnBuffer(plan, fb::DType::F32, all);
    const uint32_t x = hasLoop ? test::addRowsOfRun(plan, X, 1) : X,
                   sum = hasLoop ? test::addRowsOfRun(plan, total, 1) : total;
    const std::vector<int64_t> shape = program.buffers[x]->shape;
    const uint32_t out = test::addOwnBuffer(plan, fb::DType::F32, shape);
    auto add = [&](auto table) {
      auto command = std::make_unique<fb::CommandT>();
      command->operation.Set(std::move(table));
      program.commands.push_back(std::move(command));
    };
    if (hasLoop) {
      fb::LoopT loop;
      loop.runs = all[0];
      loop.commands = 3;
      add(loop);
    }
    fb::LaunchT launch;
    launch.kernel = plan.kernels.size();
    launch.group_kernel = launch.kernel + 1;
    launch.group_devices = devices;
    plan.kernels.insert(
        plan.kernels.end(),
        {"test_triple", "test_triple_sum_" + std::to_string(devices)});
    launch.buffers = {x, out};
    launch.extent = shape[0];
    launch.writes = 1;
    auto part = std::make_unique<fb::LaunchPartT>();
    part->extent = shape[0];
    part->buffers = {0, 1};
    part->bytes_per_iteration = {4, 4};
    launch.parts.push_back(std::move(part));
    add(std::move(launch));
    fb::CollectiveStartT start;
    start.kind = fb::CollectiveKind::AllReduce;
    start.axes = axes;
    auto item = std::make_unique<fb::CollectiveItemT>();
    item->in = out;
    item->out = sum;
    start.items.push_back(std::move(item));
    fb::CollectiveWaitT wait;
    wait.start = program.commands.size();
    add(std::move(start));
    add(wait);
    auto result = std::make_unique<fb::ResultT>();
    result->name = "sum";
    result->buffer = total;
    result->shape = all;
    result->sharding = std::make_unique<fb::ShardingT>();
    result->sharding->dims.push_back(std::make_unique<fb::DimShardingT>());
    program.results.push_back(std::move(result));
  };
}

class SummedLaunchTest
    : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(SummedLaunchTest, HasTheBitsOfTheReduction) {
  auto [devices, threads, hasLoop] = GetParam();
  auto plan = parse(makePlan(devices, withSummedLaunch(devices, {0}, hasLoop)));
  HostArray x(DType::F32, {12});
  for (int i = 0; i < 12; ++i)
    x.values<float>()[i] = std::sin(float(i)) * float(1 << i);
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  auto run = [&](bool share) {
    ExecutorOptions options;
    options.shareReplicas = share;
    auto executor = Executor::create(**context, plan, options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    EXPECT_TRUE((*executor)->initializeParameters().ok());
    auto result = (*executor)->step({{"x", x.view()}});
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  };
  RunResult shared = run(true), apart = run(false);
  EXPECT_EQ(0, std::memcmp(shared.find("sum")->values<float>().data(),
                           apart.find("sum")->values<float>().data(),
                           12 / devices * sizeof(float)));
  EXPECT_EQ(shared.wireBytes, apart.wireBytes);
}

INSTANTIATE_TEST_SUITE_P(Meshes, SummedLaunchTest,
                         testing::Combine(testing::Values(2, 3, 4, 6),
                                          testing::Values(1, 2, 3),
                                          testing::Bool()));

TEST(SummedLaunchTest, NeedsAllDevicesOfItsGroups) {
  // The number of commands of which a process adds up results.
  auto count = [](const Plan &plan, int processes, bool share = true) {
    LayoutOptions options;
    options.processes = processes;
    options.share = share;
    auto layouts = ArenaLayout::create(plan.spec(), options);
    EXPECT_TRUE(layouts.ok()) << layouts.status();
    int found = 0;
    for (size_t i = 0; i < plan.spec().programs[0].commands.size(); ++i)
      found += layouts->front().addsUp(0, i);
    return found;
  };
  auto plan = parse(makePlan(4, withSummedLaunch(4, {0})));
  EXPECT_EQ(count(*plan, 1), 1);
  EXPECT_EQ(count(*plan, 1, /*share=*/false), 0);
  EXPECT_EQ(count(*plan, 2), 0);
  EXPECT_EQ(count(*parse(makePlan(4, withSummedLaunch(4, {0}, true))), 1), 1);
  // It adds up fewer than the reduction.
  EXPECT_EQ(count(*parse(makePlan(4, withSummedLaunch(2, {0}))), 1), 0);
  // Something else reads the results.
  auto read = [](fb::PlanT &edited) {
    withSummedLaunch(4, {0})(edited);
    auto &results = edited.programs[0]->results;
    results.back()->buffer += 1;
  };
  EXPECT_EQ(count(*parse(makePlan(4, read)), 1), 0);
}

/// The compiler has several buffers for one accumulator: that of a GEMM in a
/// loop, and those that are cleared before the loop and read after it.
TEST(AliasSetsTest, AnAccumulatorIsOneSet) {
  uint32_t cleared = 0, added = 0;
  auto plan = parse(makePlan(2, [&](fb::PlanT &p) {
    test::addLoops(p);
    fb::ProgramT &program = *p.programs[0];
    fb::GemmT *gemm = program.commands[8]->operation.AsGemm();
    cleared = gemm->c;
    added = gemm->c = program.buffers.size();
    program.buffers.push_back(
        std::make_unique<fb::BufferT>(*program.buffers[cleared]));
  }));
  AliasSets aliasSets(plan->spec());
  EXPECT_EQ(aliasSets.ofBuffer(0, added), aliasSets.ofBuffer(0, cleared));
}

/// GEMMs of one term each, merged.
MergedGemms merge(const GemmCommand &gemm, std::vector<GemmPointers> calls,
                  bool inOrder = false, DType dtype = DType::F32) {
  MergedGemms gemms{gemm, {}, std::move(calls)};
  mergeGemms({dtype, dtype}, inOrder, gemms);
  return gemms;
}

TEST(MergeGemmsTest, RowsThatFollowOneAnother) {
  std::vector<char> memory(4096);
  char *a = memory.data(), *b = a + 1024, *c = b + 1024;
  GemmCommand gemm{};
  gemm.batch = 1;
  gemm.m = 2, gemm.n = 3, gemm.k = 4;
  // The last comes first; two pairs have different b.
  std::vector<GemmPointers> gemms;
  for (int i : {3, 0, 1, 2})
    gemms.push_back({{{a + i * 32, b + i / 2 * 48}}, nullptr, c + i * 24});
  const MergedGemms pairs = merge(gemm, gemms);
  ASSERT_EQ(pairs.calls.size(), 2u);
  EXPECT_EQ(pairs.command.m, 4);
  EXPECT_EQ(pairs.calls[1].c, c + 48);
  EXPECT_EQ(pairs.calls[1].terms[0].a, a + 64);
  EXPECT_TRUE(pairs.pieces.a.isWhole());

  for (GemmPointers &one : gemms)
    one.terms[0].b = b;
  const MergedGemms all = merge(gemm, gemms);
  ASSERT_EQ(all.calls.size(), 1u);
  EXPECT_EQ(all.command.m, 8);
  EXPECT_EQ(all.calls[0].c, c);

  // Columns of a transposed factor do not follow one another.
  gemm.transposeA = true;
  const MergedGemms apart = merge(gemm, gemms);
  EXPECT_EQ(apart.calls.size(), 4u);
  EXPECT_EQ(apart.command.m, 2);
}

TEST(MergeGemmsTest, RowsAtEqualDistances) {
  std::vector<char> memory(4096);
  char *a = memory.data(), *b = a + 1024, *c = b + 1024;
  GemmCommand gemm{};
  gemm.batch = 1;
  gemm.m = 2, gemm.n = 3, gemm.k = 4;
  std::vector<GemmPointers> gemms;
  for (int i = 0; i < 4; ++i)
    gemms.push_back({{{a + i * 64, b}}, nullptr, c + i * 24});
  const MergedGemms all = merge(gemm, gemms);
  ASSERT_EQ(all.calls.size(), 1u);
  EXPECT_EQ(all.command.m, 8);
  EXPECT_EQ(all.calls[0].terms[0].a, a);
  EXPECT_EQ(all.pieces.a.extent, 2);
  EXPECT_TRUE(all.pieces.a.areRows);
  EXPECT_EQ(all.pieces.a.rowStride, 4);
  EXPECT_EQ(all.pieces.a.distance, 16);
  EXPECT_TRUE(all.pieces.b.isWhole());
  // In two groups, whose distance differs.
  for (int i : {2, 3})
    gemms[i].terms[0].a += 32;
  const MergedGemms pairs = merge(gemm, gemms);
  ASSERT_EQ(pairs.calls.size(), 2u);
  EXPECT_EQ(pairs.command.m, 4);
  EXPECT_EQ(pairs.pieces.a.distance, 16);
  // The same rows, rows that overlap, and bf16.
  for (int distance : {0, 16}) {
    for (int i = 0; i < 4; ++i)
      gemms[i].terms[0].a = a + i * distance;
    EXPECT_EQ(merge(gemm, gemms).calls.size(), 4u) << distance;
  }
  for (int i = 0; i < 4; ++i)
    gemms[i] = {{{a + i * 32, b}}, nullptr, c + i * 12};
  EXPECT_EQ(merge(gemm, gemms, false, DType::BF16).calls.size(), 4u);
}

TEST(MergeGemmsTest, TermsThatFollowOneAnother) {
  std::vector<char> memory(4096);
  char *a = memory.data(), *b = a + 1024, *c = b + 1024;
  GemmCommand gemm{};
  gemm.batch = 1;
  gemm.m = 2, gemm.n = 3, gemm.k = 4;
  std::vector<GemmPointers> sum(1);
  for (int i = 0; i < 3; ++i)
    sum[0].terms.push_back({a + i * 32, b + i * 48});
  sum[0].c = c;
  for (bool transposed : {false, true}) {
    gemm.transposeA = transposed;
    const MergedGemms merged = merge(gemm, sum);
    EXPECT_EQ(merged.command.k, transposed ? 12 : 4);
    EXPECT_EQ(merged.calls[0].terms.size(), transposed ? 1u : 3u);
  }
}

TEST(MergeGemmsTest, TermsAtEqualDistances) {
  std::vector<char> memory(4096);
  char *a = memory.data(), *b = a + 1024, *c = b + 1024;
  GemmCommand gemm{};
  gemm.batch = 1;
  gemm.m = 2, gemm.n = 3, gemm.k = 4;
  gemm.transposeA = true;
  std::vector<GemmPointers> sum(1);
  for (int i = 0; i < 3; ++i)
    sum[0].terms.push_back({a + i * 64, b + i * 48});
  sum[0].c = c;
  const MergedGemms merged = merge(gemm, sum);
  EXPECT_EQ(merged.command.k, 12);
  EXPECT_EQ(merged.pieces.a.extent, 4);
  EXPECT_EQ(merged.pieces.a.rowStride, 2);
  EXPECT_EQ(merged.pieces.a.distance, 16);
  EXPECT_TRUE(merged.pieces.b.isWhole());
  // Columns of b at a distance have no pieces of rows.
  gemm.transposeB = true;
  EXPECT_EQ(merge(gemm, sum).command.k, 4);
  // Nor has any other order.
  gemm.transposeB = false;
  std::swap(sum[0].terms[1], sum[0].terms[2]);
  EXPECT_EQ(merge(gemm, sum).command.k, 4);
}

TEST(MergeGemmsTest, TermsInOrderStayApart) {
  std::vector<char> memory(4096);
  char *a = memory.data(), *b = a + 1024, *c = b + 1024;
  GemmCommand gemm{};
  gemm.batch = 1;
  gemm.m = 2, gemm.n = 3, gemm.k = 4;
  gemm.transposeA = true;
  const MergedGemms merged =
      merge(gemm, {{{{a, b}, {a + 32, b + 48}}, nullptr, c}}, /*inOrder=*/true);
  EXPECT_EQ(merged.command.k, 4);
  EXPECT_EQ(merged.calls[0].terms.size(), 2u);
}

} // namespace
