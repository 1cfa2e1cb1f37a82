//===- GatheredFactorsTest.cpp - All-gathers that need no copy ------------===//

#include "MatrixPlan.h"

#include "exec/GatheredFactors.h"

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// A GEMM c = a b, or of the transposes, of parameters. b, or a, is gathered
/// along one dimension.
struct Sizes {
  int64_t m, n, k;
  bool transposeA, transposeB;
  int dim;
  bool isLeft = false;
};

/// The all-gather of the plan below.
constexpr uint32_t gatherCommand = firstAddedCommand;

using GatherEdit = std::function<void(fb::PlanT &, fb::GemmT &)>;

/// The test plan, with the GEMM.
std::string makeGatherPlan(int devices, const Sizes &sizes,
                           const GatherEdit &edit = {}) {
  return makePlan(devices, [&](fb::PlanT &plan) {
    std::vector<int64_t> aShape{sizes.m, sizes.k}, bShape{sizes.k, sizes.n};
    if (sizes.transposeA)
      std::swap(aShape[0], aShape[1]);
    if (sizes.transposeB)
      std::swap(bShape[0], bShape[1]);
    std::vector<std::vector<uint16_t>> sharded(2);
    sharded[sizes.dim] = {0};
    const std::vector<std::vector<uint16_t>> whole(2);
    fb::GemmT gemm;
    gemm.a = addParameter(plan, "a", aShape, sizes.isLeft ? sharded : whole);
    gemm.b = addParameter(plan, "b", bShape, sizes.isLeft ? whole : sharded);
    auto &gathered = sizes.isLeft ? gemm.a : gemm.b;
    gathered =
        addAllGather(plan, gathered, sizes.isLeft ? aShape : bShape, sizes.dim);
    gemm.m = sizes.m, gemm.n = sizes.n, gemm.k = sizes.k;
    gemm.transpose_a = sizes.transposeA;
    gemm.transpose_b = sizes.transposeB;
    fb::GemmT *added = addGemm(plan, gemm);
    if (edit)
      edit(plan, *added);
  });
}

/// What is in place in a loaded plan.
class LoadedGather : public LoadedPlan {
public:
  explicit LoadedGather(const std::string &bytes)
      : LoadedPlan(bytes), gathered(buffers, prepared) {}

  bool isInPlace(uint32_t gather = gatherCommand) const {
    return gathered.isInPlace(gather, 0);
  }
  const GatheredFactors::Factor *factor() const {
    return gathered.find(std::get<CollectiveStartCommand>(
                             program().commands[gatherCommand].operation)
                             .items[0]
                             .out);
  }

private:
  PreparedSteps prepared;
  GatheredFactors gathered;
};

/// Compares the result "c" with that of copies.
void expectBitsAndBytesOfACopy(const std::string &bytes, int threads) {
  EXPECT_TRUE(LoadedGather(bytes).isInPlace());
  expectBitsAndBytesOfCopies(bytes, "c", threads);
}

class GatheredGemmTest
    : public testing::TestWithParam<std::tuple<Sizes, int, int>> {};

TEST_P(GatheredGemmTest, HasTheBitsAndTheBytesOfACopy) {
  auto [sizes, devices, threads] = GetParam();
  expectBitsAndBytesOfACopy(makeGatherPlan(devices, sizes), threads);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, GatheredGemmTest,
    testing::Combine(testing::Values(Sizes{17, 231, 129, false, false, 0},
                                     Sizes{17, 231, 129, false, false, 1},
                                     Sizes{17, 231, 129, false, true, 0},
                                     Sizes{17, 231, 129, false, true, 1},
                                     Sizes{150, 200, 333, true, false, 1},
                                     Sizes{150, 200, 333, true, true, 1},
                                     Sizes{300, 129, 700, false, false, 0},
                                     Sizes{300, 129, 700, false, true, 1}),
                     testing::Values(2, 3, 4), testing::Values(1, 2)));

INSTANTIATE_TEST_SUITE_P(
    Left, GatheredGemmTest,
    testing::Combine(testing::Values(Sizes{231, 17, 129, false, false, 0, true},
                                     Sizes{231, 17, 129, false, false, 1, true},
                                     Sizes{231, 17, 129, true, false, 0, true},
                                     Sizes{231, 17, 129, true, true, 1, true},
                                     Sizes{200, 150, 333, false, true, 0, true},
                                     Sizes{129, 300, 700, false, false, 1,
                                           true},
                                     Sizes{129, 300, 700, true, true, 0, true}),
                     testing::Values(2, 3, 4), testing::Values(1, 2)));

/// The sum over d of GEMMs whose factors, of rows that differ along d, are
/// gathered over e: rows of a and columns of b, or the other way round.
class GatheredSumTest
    : public testing::TestWithParam<std::tuple<bool, bool, int>> {};

TEST_P(GatheredSumTest, HasTheBitsOfCopies) {
  auto [isScattered, ofRowsOfA, threads] = GetParam();
  const int64_t devices = 4, k = 66, m = 70, n = 256;
  const std::string bytes = makePlan(devices, [&, scatters = isScattered,
                                               ofRows =
                                                   ofRowsOfA](fb::PlanT &plan) {
    addAxis(plan);
    const std::vector<std::vector<uint16_t>> rows{{0, 1}, {}},
        columns{{0}, {1}};
    fb::GemmT gemm;
    gemm.a = addParameter(plan, "a", {devices * k, m}, ofRows ? rows : columns);
    gemm.b = addParameter(plan, "b", {devices * k, n}, ofRows ? columns : rows);
    gemm.a = addAllGather(plan, gemm.a, {k, m}, ofRows ? 0 : 1, {1});
    gemm.b = addAllGather(plan, gemm.b, {k, n}, ofRows ? 1 : 0, {1});
    gemm.c = addOwnBuffer(plan, fb::DType::F32, {m, n});
    gemm.m = m, gemm.n = n, gemm.k = k;
    gemm.transpose_a = true;
    addCommand(plan, gemm);
    if (scatters) {
      uint32_t shard = addCollective(plan, fb::CollectiveKind::ReduceScatter,
                                     gemm.c, {m, n / devices}, 1);
      addResult(plan, "c", addCopyOf(plan, shard), {m, n}, {{}, {0}});
    } else {
      addResult(
          plan, "c",
          addCollective(plan, fb::CollectiveKind::AllReduce, gemm.c, {m, n}, 0),
          {m, n});
    }
  });
  LoadedGather loaded(bytes);
  EXPECT_TRUE(loaded.isInPlace());
  EXPECT_TRUE(loaded.isInPlace(gatherCommand + 2));
  // Without an order GEMMs add up other terms first than collectives.
  expectBitsAndBytesOfCopies(bytes, "c", threads, /*orderedSums=*/true);
}

INSTANTIATE_TEST_SUITE_P(Sums, GatheredSumTest,
                         testing::Combine(testing::Bool(), testing::Bool(),
                                          testing::Values(1, 2)));

TEST(GatheredFactorsTest, RowsOneAfterTheOtherAreAWhole) {
  // 64 rows of 32 floats are a multiple of the alignment.
  LoadedGather rows(makeGatherPlan(2, {8, 32, 128, false, false, 0}));
  ASSERT_NE(rows.factor(), nullptr);
  EXPECT_EQ(rows.factor()->numPieces, 1);
  EXPECT_TRUE(rows.factor()->pieces.isWhole());
  // Of three shards of 43 the last one has 42.
  LoadedGather columns(makeGatherPlan(3, {8, 128, 32, false, false, 1}));
  ASSERT_NE(columns.factor(), nullptr);
  EXPECT_EQ(columns.factor()->numPieces, 3);
  EXPECT_EQ(columns.factor()->pieces.extent, 43);
  EXPECT_EQ(columns.factor()->pieces.rowStride, 43);
}

TEST(GatheredFactorsTest, NoPieceIsEmpty) {
  // 38 shards of 33 columns, one of 31, and one of none.
  LoadedGather loaded(makeGatherPlan(40, {8, 1285, 64, false, false, 1}));
  ASSERT_NE(loaded.factor(), nullptr);
  EXPECT_EQ(loaded.factor()->numPieces, 39);
  // Those of 31 devices have 31 columns: too few.
  LoadedGather narrow(makeGatherPlan(31, {8, 961, 64, false, false, 1}));
  EXPECT_EQ(narrow.factor(), nullptr);
}

/// Of a dimension that one device has all of, others have nothing.
TEST(GatheredFactorsTest, OnePieceIsAWhole) {
  const std::string plan = makeGatherPlan(2, {8, 1, 64, false, false, 1});
  LoadedGather loaded(plan);
  ASSERT_NE(loaded.factor(), nullptr);
  EXPECT_EQ(loaded.factor()->numPieces, 1);
  EXPECT_TRUE(loaded.factor()->pieces.isWhole());
  expectBitsAndBytesOfACopy(plan, 2);
}

/// What a program does besides, so that the copy has to stay.
struct GatherUse {
  const char *name;
  bool isInPlace;
  GatherEdit edit;
};

void PrintTo(const GatherUse &use, std::ostream *out) { *out << use.name; }

class GatherUseTest : public testing::TestWithParam<GatherUse> {};

TEST_P(GatherUseTest, DecidesWhetherItNeedsACopy) {
  const std::string bytes =
      makeGatherPlan(2, {8, 128, 64, false, false, 1}, GetParam().edit);
  EXPECT_EQ(LoadedGather(bytes).isInPlace(), GetParam().isInPlace);
  expectBitsAndBytesOfCopies(bytes, "c", /*threads=*/2);
}

uint32_t shardOf(const fb::PlanT &plan) {
  return plan.programs[0]
      ->commands[gatherCommand]
      ->operation.AsCollectiveStart()
      ->items[0]
      ->in;
}

INSTANTIATE_TEST_SUITE_P(
    Uses, GatherUseTest,
    testing::Values(
        GatherUse{"nothing", true, {}},
        GatherUse{"two GEMMs read it", true,
                  [](fb::PlanT &plan, fb::GemmT &gemm) {
                    fb::GemmT other = gemm;
                    other.c = addOwnBuffer(plan, fb::DType::F32, {8, 128});
                    addCommand(plan, other);
                  }},
        GatherUse{
            "another command reads it", false,
            [](fb::PlanT &plan, fb::GemmT &gemm) { addCopyOf(plan, gemm.b); }},
        GatherUse{"the GEMM sums its columns", false,
                  [](fb::PlanT &plan, fb::GemmT &gemm) {
                    gemm.column_sums =
                        addOwnBuffer(plan, fb::DType::F32, {128});
                  }},
        GatherUse{"it is a result", false,
                  [](fb::PlanT &plan, fb::GemmT &gemm) {
                    fb::ResultT &c = *plan.programs[0]->results.back();
                    c.buffer = gemm.b;
                    c.shape = {64, 128};
                  }},
        GatherUse{"the shards are written behind the GEMM", true,
                  [](fb::PlanT &plan, fb::GemmT &) {
                    addClear(plan, shardOf(plan));
                  }},
        GatherUse{"the shards are written before the GEMM", false,
                  [](fb::PlanT &plan, fb::GemmT &) {
                    addClear(plan, shardOf(plan));
                    moveLast(plan, gatherCommand + 2);
                  }},
        GatherUse{"the shards are written by a later run of a loop", false,
                  [](fb::PlanT &plan, fb::GemmT &gemm) {
                    gemm.accumulate = true;
                    addClear(plan, gemm.c);
                    moveLast(plan, gatherCommand + 2);
                    addClear(plan, shardOf(plan));
                    addLoopFrom(plan, gatherCommand + 3);
                  }},
        GatherUse{"the GEMM is in a loop", true,
                  [](fb::PlanT &plan, fb::GemmT &gemm) {
                    gemm.accumulate = true;
                    addClear(plan, gemm.c);
                    moveLast(plan, gatherCommand + 2);
                    addLoop(plan, gatherCommand + 3, 2);
                  }},
        GatherUse{"the GEMM of a microbatch is in a loop", true,
                  [](fb::PlanT &plan, fb::GemmT &gemm) {
                    gemm.m /= 2;
                    gemm.a = addRowsOfRun(plan, gemm.a, gemm.m);
                    gemm.c = addRowsOfRun(plan, gemm.c, gemm.m);
                    addLoopFrom(plan, gatherCommand + 2);
                  }}));

/// A weight that is gathered for each microbatch, of rows of the other factor,
/// and changes behind each.
TEST(GatheredFactorsTest, AGatherInALoop) {
  const std::string bytes = makePlan(3, [](fb::PlanT &plan) {
    const int64_t rows = 40, n = 128, k = 64;
    uint32_t x = addParameter(plan, "x0", {2 * rows, k}, {{}, {}});
    uint32_t shard = addParameter(plan, "w0", {k, n}, {{}, {0}});
    uint32_t other = addParameter(plan, "w1", {k, n}, {{}, {0}});
    uint32_t y = addOwnBuffer(plan, fb::DType::F32, {2 * rows, n});
    fb::GemmT gemm;
    gemm.a = addRowsOfRun(plan, x, rows);
    gemm.b = addAllGather(plan, shard, {k, n}, 1);
    gemm.c = addRowsOfRun(plan, y, rows);
    gemm.m = rows, gemm.n = n, gemm.k = k;
    addCommand(plan, gemm);
    fb::CopyT copy;
    copy.in = other;
    copy.out = shard;
    addCommand(plan, copy);
    addLoopFrom(plan, gatherCommand);
    plan.programs[0]
        ->commands[gatherCommand + 2]
        ->operation.AsCollectiveWait()
        ->start = gatherCommand + 1;
    addResult(plan, "c", y, {2 * rows, n});
  });
  EXPECT_TRUE(LoadedGather(bytes).isInPlace(gatherCommand + 1));
  expectBitsAndBytesOfCopies(bytes, "c", /*threads=*/2);
}

TEST(GatheredFactorsTest, ShardsOfSeveralAxes) {
  for (int dim : {0, 1}) {
    std::string bytes = makePlan(3, [&](fb::PlanT &plan) {
      addAxis(plan);
      std::vector<std::vector<uint16_t>> axes(2);
      axes[dim] = {1, 0};
      fb::GemmT gemm;
      gemm.a = addParameter(plan, "a", {40, 250}, {{}, {}});
      gemm.b = addAllGather(plan, addParameter(plan, "b", {250, 330}, axes),
                            {250, 330}, dim, {1, 0});
      gemm.m = 40, gemm.n = 330, gemm.k = 250;
      addGemm(plan, gemm);
    });
    LoadedGather loaded(bytes);
    ASSERT_NE(loaded.factor(), nullptr);
    EXPECT_EQ(loaded.factor()->numPieces, 6);
    expectBitsAndBytesOfACopy(bytes, 2);
  }
}

/// Rows of a that devices gather follow one another, and so do rows of c: one
/// GEMM computes them all from the copies.
TEST(GatheredFactorsTest, WhatIsMergedNeedsACopy) {
  for (bool isMerged : {false, true}) {
    LoadedGather loaded(makePlan(2, [&](fb::PlanT &plan) {
      addAxis(plan);
      // Gathered over d; over e rows differ, or those of different matrices b.
      uint32_t shard = addParameter(plan, "a", {128, 64}, {{1}, {0}});
      uint32_t b = addParameter(
          plan, "b", {128, 32},
          {{isMerged ? std::vector<uint16_t>() : std::vector<uint16_t>{1}},
           {}});
      plan.programs[0]->buffers[b]->shape = {64, 32};
      plan.programs[0]->buffers[b]->bytes = 64 * 32 * 4;
      fb::GemmT gemm;
      gemm.a = addAllGather(plan, shard, {64, 64}, 1);
      gemm.b = b;
      gemm.c = addOwnBuffer(plan, fb::DType::F32, {64, 32});
      gemm.m = 64, gemm.n = 32, gemm.k = 64;
      addCommand(plan, gemm);
    }));
    EXPECT_EQ(loaded.isInPlace(), !isMerged);
  }
}

} // namespace
