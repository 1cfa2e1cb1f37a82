//===- ScatteredSumsTest.cpp - Reduce-scatters that need no copy ----------===//

#include "MatrixPlan.h"

#include "exec/ScatteredSums.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// c = aᵀ b over devices that have rows of a and b, of which each gets a shard
/// along one dimension.
struct Sizes {
  int64_t m, n;
  int dim;
};

using ScatterEdit = std::function<void(fb::PlanT &, uint32_t shard)>;

/// The test plan with the sum. A copy of the shards is the result "sum".
std::string makeScatterPlan(int devices, const Sizes &sizes,
                            const ScatterEdit &edit = {}) {
  return makePlan(devices, [&](fb::PlanT &plan) {
    const int64_t k = 4 * devices;
    fb::GemmT gemm;
    gemm.a = addParameter(plan, "a", {k, sizes.m}, {{0}, {}});
    gemm.b = addParameter(plan, "b", {k, sizes.n}, {{0}, {}});
    gemm.c = addOwnBuffer(plan, fb::DType::F32, {sizes.m, sizes.n});
    gemm.m = sizes.m, gemm.n = sizes.n, gemm.k = 4;
    gemm.transpose_a = true;
    addCommand(plan, gemm);
    std::vector<int64_t> shape{sizes.m, sizes.n};
    shape[sizes.dim] = (shape[sizes.dim] + devices - 1) / devices;
    uint32_t shard = addCollective(plan, fb::CollectiveKind::ReduceScatter,
                                   gemm.c, shape, sizes.dim);
    std::vector<std::vector<uint16_t>> axes(2);
    axes[sizes.dim] = {0};
    addResult(plan, "sum", addCopyOf(plan, shard), {sizes.m, sizes.n}, axes);
    if (edit)
      edit(plan, shard);
  });
}

constexpr uint32_t scatterCommand = firstAddedCommand + 1;

class LoadedScatter : public LoadedPlan {
public:
  explicit LoadedScatter(const std::string &bytes)
      : LoadedPlan(bytes), scattered(buffers) {}

  bool isInPlace() const { return scattered.isInPlace(scatterCommand, 0); }

private:
  ScatteredSums scattered;
};

class ScatterTest : public testing::TestWithParam<std::tuple<Sizes, int, int>> {
};

TEST_P(ScatterTest, GivesEachDeviceItsShardOfTheSum) {
  auto [sizes, devices, threads] = GetParam();
  std::string bytes = makeScatterPlan(devices, sizes);
  EXPECT_EQ(LoadedScatter(bytes).isInPlace(),
            (sizes.dim == 0 ? sizes.m : sizes.n) % devices == 0);
  auto plan = Plan::parse(bytes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto context = Context::create({threads});
  ASSERT_TRUE(context.ok());
  const int64_t k = 4 * devices;
  HostArray x(DType::F32, {12}), a(DType::F32, {k, sizes.m}),
      b(DType::F32, {k, sizes.n});
  // Small whole numbers: exact in any order.
  for (int64_t i = 0; i < k * sizes.m; ++i)
    a.values<float>()[i] = float(i * 7 % 11 - 5);
  for (int64_t i = 0; i < k * sizes.n; ++i)
    b.values<float>()[i] = float(i * 5 % 13 - 6);
  uint64_t wireBytes[2];
  // With the sum in order GEMMs add up tile by tile.
  for (auto [share, ordered] : {std::pair(false, false), std::pair(true, false),
                                std::pair(true, true)}) {
    ExecutorOptions options;
    options.shareReplicas = share;
    options.orderedSums = ordered;
    auto executor = Executor::create(**context, *plan, options);
    ASSERT_TRUE(executor.ok()) << executor.status();
    ASSERT_TRUE((*executor)->initializeParameters().ok());
    ASSERT_TRUE((*executor)->setTensor("a", a.view()).ok());
    ASSERT_TRUE((*executor)->setTensor("b", b.view()).ok());
    for (int step = 0; step < 2; ++step) {
      auto result = (*executor)->step({{"x", x.view()}});
      ASSERT_TRUE(result.ok()) << result.status();
      wireBytes[share] = result->wireBytes;
      const HostArray &sum = *result->find("sum");
      for (int64_t i = 0; i < sizes.m; ++i)
        for (int64_t j = 0; j < sizes.n; ++j) {
          float expected = 0;
          for (int64_t l = 0; l < k; ++l)
            expected += a.values<float>()[l * sizes.m + i] *
                        b.values<float>()[l * sizes.n + j];
          ASSERT_EQ(sum.values<float>()[i * sizes.n + j], expected)
              << i << ", " << j;
        }
    }
  }
  EXPECT_EQ(wireBytes[0], wireBytes[1]);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ScatterTest,
    testing::Combine(testing::Values(Sizes{48, 128, 0}, Sizes{48, 384, 1},
                                     Sizes{7, 768, 1}, Sizes{145, 384, 1}),
                     testing::Values(2, 3, 4), testing::Values(1, 2)));

/// What a program does besides, so that the copy has to stay.
struct ScatterUse {
  const char *name;
  bool isInPlace;
  Sizes sizes;
  ScatterEdit edit;
};

void PrintTo(const ScatterUse &use, std::ostream *out) { *out << use.name; }

class ScatterUseTest : public testing::TestWithParam<ScatterUse> {};

TEST_P(ScatterUseTest, DecidesWhetherItNeedsACopy) {
  const std::string bytes =
      makeScatterPlan(2, GetParam().sizes, GetParam().edit);
  EXPECT_EQ(LoadedScatter(bytes).isInPlace(), GetParam().isInPlace);
  expectBitsAndBytesOfCopies(bytes, "sum", /*threads=*/2, /*orderedSums=*/true);
}

/// Clears another buffer in the place of the sum.
void overwriteSum(fb::PlanT &plan) {
  fb::ProgramT &step = *plan.programs[0];
  uint32_t sum = step.commands[firstAddedCommand]->operation.AsGemm()->c;
  step.buffers.push_back(std::make_unique<fb::BufferT>(*step.buffers[sum]));
  addClear(plan, step.buffers.size() - 1);
}

/// Copies the shard once more, and makes that the result.
void addSecondReader(fb::PlanT &plan, uint32_t shard) {
  plan.programs[0]->results.back()->buffer = addCopyOf(plan, shard);
}

INSTANTIATE_TEST_SUITE_P(
    Uses, ScatterUseTest,
    testing::Values(
        ScatterUse{"rows", true, {8, 64, 0}, {}},
        ScatterUse{"columns", true, {8, 64, 1}, {}},
        ScatterUse{"columns that are no whole panels", false, {64, 96, 1}, {}},
        ScatterUse{"shards that are not aligned", false, {2, 8, 0}, {}},
        ScatterUse{"shards of different sizes", false, {7, 64, 0}, {}},
        ScatterUse{"a GEMM reads the shard",
                   false,
                   {8, 64, 0},
                   [](fb::PlanT &plan, uint32_t shard) {
                     fb::GemmT gemm;
                     gemm.a = gemm.b = shard;
                     gemm.c = addOwnBuffer(plan, fb::DType::F32, {4, 4});
                     gemm.m = gemm.n = 4, gemm.k = 64;
                     gemm.transpose_b = true;
                     addCommand(plan, gemm);
                   }},
        ScatterUse{"the shard is a result",
                   false,
                   {8, 64, 0},
                   [](fb::PlanT &plan, uint32_t shard) {
                     plan.programs[0]->results.back()->buffer = shard;
                   }},
        ScatterUse{"the sum is written behind the last reader",
                   true,
                   {8, 64, 0},
                   [](fb::PlanT &plan, uint32_t) { overwriteSum(plan); }},
        ScatterUse{"the sum is written before the last reader",
                   false,
                   {8, 64, 0},
                   [](fb::PlanT &plan, uint32_t shard) {
                     overwriteSum(plan);
                     addCopyOf(plan, shard);
                   }},
        ScatterUse{"a later run of a loop writes the sum",
                   false,
                   {8, 64, 0},
                   [](fb::PlanT &plan, uint32_t) {
                     overwriteSum(plan);
                     addLoopFrom(plan, scatterCommand + 2);
                   }},
        ScatterUse{"two commands read shards of rows",
                   true,
                   {8, 64, 0},
                   addSecondReader},
        ScatterUse{"two commands read shards of columns",
                   true,
                   {33, 256, 1},
                   addSecondReader},
        ScatterUse{"all runs of a loop read shards of columns",
                   true,
                   {33, 256, 1},
                   [](fb::PlanT &plan, uint32_t shard) {
                     // Twice below one another; the loop writes nothing else.
                     auto &buffers = plan.programs[0]->buffers;
                     uint32_t twice =
                         addOwnBuffer(plan, fb::DType::F32,
                                      {2 * buffers[shard]->shape[0],
                                       buffers[shard]->shape[1]});
                     fb::CopyT copy;
                     copy.in = shard;
                     copy.out =
                         addRowsOfRun(plan, twice, buffers[shard]->shape[0]);
                     addCommand(plan, copy);
                     addLoop(plan, scatterCommand + 3, 2);
                     fb::ResultT &sum = *plan.programs[0]->results.back();
                     sum.buffer = twice;
                     sum.shape[0] *= 2;
                   }},
        ScatterUse{"a sum over another axis reads shards of columns",
                   true,
                   {33, 256, 1},
                   [](fb::PlanT &plan, uint32_t shard) {
                     addAxis(plan);
                     plan.programs[0]->results.back()->buffer = addCollective(
                         plan, fb::CollectiveKind::AllReduce, shard,
                         plan.programs[0]->buffers[shard]->shape, 0, {1});
                   }}));

/// A kernel that adds up over devices stores whole rows: shards of columns are
/// copied, those of rows are not.
TEST(ScatteredSumsTest, ColumnsOfTheSumOfAKernelAreCopied) {
  for (int dim : {0, 1}) {
    const std::string bytes = makePlan(2, [&](fb::PlanT &plan) {
      fb::LaunchT launch;
      launch.kernel = plan.kernels.size();
      launch.group_kernel = launch.kernel + 1;
      launch.group_devices = 2;
      plan.kernels.insert(plan.kernels.end(),
                          {"test_triple", "test_triple_sum_2"});
      const uint32_t a = addParameter(plan, "a", {8, 64}, {{0}, {}});
      const uint32_t c = addOwnBuffer(plan, fb::DType::F32, {4, 64});
      launch.buffers = {a, c};
      launch.extent = 4 * 64;
      launch.writes = 1;
      launch.parts.push_back(std::make_unique<fb::LaunchPartT>());
      launch.parts[0]->extent = launch.extent;
      launch.parts[0]->buffers = {0, 1};
      launch.parts[0]->bytes_per_iteration = {4, 4};
      addCommand(plan, std::move(launch));
      std::vector<int64_t> shape{4, 64};
      shape[dim] /= 2;
      std::vector<std::vector<uint16_t>> axes(2);
      axes[dim] = {0};
      const uint32_t shard =
          addCollective(plan, fb::CollectiveKind::ReduceScatter, c, shape, dim);
      addResult(plan, "sum", addCopyOf(plan, shard), {4, 64}, axes);
    });
    EXPECT_EQ(LoadedScatter(bytes).isInPlace(), dim == 0);
    expectBitsAndBytesOfCopies(bytes, "sum", /*threads=*/2);
  }
}

} // namespace
