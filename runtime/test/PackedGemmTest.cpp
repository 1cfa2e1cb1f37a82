//===- PackedGemmTest.cpp - Packed GEMMs against sums in double -----------===//

#include "backends/cpu/PackedGemm.h"

#include "base/Convert.h"
#include "base/ReductionTree.h"
#include "exec/RunGemm.h"

#include "Sanitized.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <set>

using namespace shardc::rt;

namespace {

struct KernelsOf {
  const char *name;
  const MicroKernels *kernels;
  bool canRun;
};

/// All versions; those that this CPU cannot run are skipped by name.
std::vector<KernelsOf> versions() {
  bool hasAvx512 = false, hasAvx2 = false, hasPairs = false;
#if defined(__x86_64__)
  hasAvx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  hasPairs = hasAvx512 && __builtin_cpu_supports("avx512bf16");
#endif
  return {{"portable", &MicroKernels::portable(), true},
          {"avx2", &MicroKernels::avx2(), hasAvx2},
          {"avx512", &MicroKernels::avx512(), hasAvx512},
          {"avx512bf16", &MicroKernels::avx512bf16(), hasPairs}};
}

GemmCommand commandOf(int64_t m, int64_t n, int64_t k, bool transposeA = false,
                      bool transposeB = false) {
  GemmCommand command{};
  command.bias = -1;
  command.batch = 1;
  command.m = m, command.n = n, command.k = k;
  command.transposeA = transposeA;
  command.transposeB = transposeB;
  return command;
}

/// Factors with numbers behind their end that must not count: NaN.
struct Operands {
  explicit Operands(const GemmCommand &gemm, uint32_t seed = 1)
      : a(gemm.m * gemm.k + 64, NAN), b(gemm.k * gemm.n + 64, NAN),
        bias(gemm.n), c(gemm.m * gemm.n + 64) {
    for (std::vector<float> *all : {&a, &b, &bias, &c}) {
      float *values = all->data();
      const size_t padding = all == &a || all == &b ? 64 : 0;
      for (size_t i = 0; i < all->size() - padding; ++i) {
        // A linear congruential generator; from -1 to 1.
        seed = seed * 1664525 + 1013904223;
        values[i] = int32_t(seed) * 0x1p-31f;
      }
    }
  }

  std::vector<float> a, b, bias, c;
};

/// Runs a GEMM on `workers` workers and returns c.
std::vector<float> computeGemm(const PreparedGemm &gemm, Operands operands,
                               bool hasBias, int workers = 1) {
  WorkerPool pool(workers);
  std::vector<float> packed(gemm.packedBytes() / sizeof(float), NAN);
  GemmOperands addresses{operands.a.data(), operands.b.data(),
                         hasBias ? operands.bias.data() : nullptr,
                         operands.c.data(), packed.data()};
  pool.run([&](int worker) { runGemm(gemm, addresses, pool, worker); });
  return operands.c;
}

/// Compares with sums in double; the bound is that of sums of k terms.
/// `rounding` is that of the result, relative to it.
void expectNear(const GemmCommand &gemm, const Operands &operands,
                const std::vector<float> &c, bool hasBias,
                double rounding = 0) {
  auto at = [](const std::vector<float> &of, int64_t i, int64_t stride,
               int64_t term, int64_t termStride) {
    return double(of[i * stride + term * termStride]);
  };
  double unit = std::ldexp(1.0, -24);
  // Of large ones a part of each row and column.
  int64_t step = gemm.m * gemm.n * gemm.k > 1 << 22 ? 13 : 1;
  for (int64_t i = 0; i < gemm.m; ++i)
    for (int64_t j = i % step; j < gemm.n; j += step) {
      int64_t place = i * gemm.n + j;
      double sum = gemm.accumulate ? operands.c[place] : 0;
      double size = std::fabs(sum);
      for (int64_t l = 0; l < gemm.k; ++l) {
        double product = at(operands.a, i, gemm.transposeA ? 1 : gemm.k, l,
                            gemm.transposeA ? gemm.m : 1) *
                         at(operands.b, j, gemm.transposeB ? gemm.k : 1, l,
                            gemm.transposeB ? 1 : gemm.n);
        sum += product;
        size += std::fabs(product);
      }
      if (hasBias)
        sum += operands.bias[j], size += std::fabs(operands.bias[j]);
      if (gemm.activation == Activation::Relu)
        sum = std::max(sum, 0.0);
      ASSERT_NEAR(c[place], sum,
                  (gemm.k + 3) * unit * size + rounding * std::fabs(sum))
          << gemm.m << "x" << gemm.n << "x" << gemm.k << " at " << i << ", "
          << j;
    }
  // Nothing is written behind the end.
  const void *behind = &c[gemm.m * gemm.n];
  const void *before = &operands.c[gemm.m * gemm.n];
  EXPECT_EQ(0, std::memcmp(behind, before, 64 * sizeof(float)));
}

bool haveEqualBits(const std::vector<float> &x, const std::vector<float> &y) {
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

TEST(PackedGemmTest, OddShapesInAllTranspositions) {
  const int64_t shapes[][3] = {
      {1, 1, 1},      {1, 17, 5},    {17, 1, 5},    {2, 3, 400},
      {5, 7, 11},     {6, 16, 384},  {7, 33, 385},  {13, 15, 769},
      {29, 31, 37},   {100, 20, 30}, {20, 100, 30}, {97, 101, 103},
      {300, 50, 9},   {50, 300, 9},  {145, 129, 1}, {100, 7, 400},
      {9, 100, 500},  {31, 300, 20}, {40, 45, 800}, {200, 40, 129},
      {27, 520, 801},
  };
  for (const KernelsOf &version : versions()) {
    if (!version.canRun)
      continue;
    for (const auto &[m, n, k] : shapes)
      for (int which = 0; which < 16; ++which) {
        GemmCommand gemm = commandOf(m, n, k, which & 1, which & 2);
        gemm.accumulate = which & 4;
        gemm.activation = which & 8 ? Activation::Relu : Activation::None;
        bool hasBias = which & 8;
        Operands operands(gemm);
        SCOPED_TRACE(version.name);
        expectNear(gemm, operands,
                   computeGemm(PackedGemm(gemm, {}, *version.kernels), operands,
                               hasBias),
                   hasBias);
      }
  }
}

/// Shapes that are packed before their tiles, in one round and in several.
TEST(PackedGemmTest, LargeShapesInAllTranspositions) {
  for (const KernelsOf &version : versions()) {
    if (!version.canRun)
      continue;
    for (const auto &[m, n, k] : {std::array<int64_t, 3>{131, 517, 251},
                                  {523, 127, 401},
                                  {263, 269, 4507}})
      for (int which = 0; which < 4; ++which) {
        GemmCommand gemm = commandOf(m, n, k, which & 1, which & 2);
        PackedGemm packed(gemm, {}, *version.kernels);
        EXPECT_NE(packed.sharedFactor(), PreparedGemm::SharedFactor::None);
        EXPECT_EQ(packed.numRounds() > 1, k > 4000);
        Operands operands(gemm);
        SCOPED_TRACE(version.name);
        expectNear(gemm, operands, computeGemm(packed, operands, false), false);
      }
  }
}

TEST(PackedGemmTest, BitsAreThoseOfTheShape) {
  for (const auto &[m, n, k] : {std::array<int64_t, 3>{131, 517, 1151},
                                {523, 127, 401},
                                {263, 269, 4507},
                                {40, 40, 777}}) {
    GemmCommand gemm = commandOf(m, n, k, false, true);
    gemm.accumulate = true;
    gemm.activation = Activation::Relu;
    Operands operands(gemm);
    std::vector<float> expected =
        computeGemm(PackedGemm(gemm, {}, MicroKernels::best()), operands, true);
    for (int workers = 2; workers <= 8; ++workers)
      EXPECT_TRUE(haveEqualBits(
          computeGemm(PackedGemm(gemm), operands, true, workers), expected))
          << workers << " workers";
    // Other tiles, rounds and factors to share.
    for (GemmCalls calls : {GemmCalls{8, 8, 8}, GemmCalls{8, 1, 8},
                            GemmCalls{8, 8, 1}, GemmCalls{64, 64, 64}})
      EXPECT_TRUE(haveEqualBits(
          computeGemm(PackedGemm(gemm, calls), operands, true), expected))
          << calls.count << " calls";
    // Kernels with multiply-adds of one rounding.
    for (const KernelsOf &version : versions()) {
      if (!version.canRun || version.kernels == &MicroKernels::portable())
        continue;
      PackedGemm packed(gemm, {}, *version.kernels);
      EXPECT_TRUE(
          haveEqualBits(computeGemm(packed, operands, true, 3), expected))
          << version.name;
    }
  }
}

/// Tiles of 32 rows or columns are as fast as larger ones, and one tile leaves
/// a worker without work.
TEST(PackedGemmTest, SidesOf64AreShared) {
  for (const auto &[m, n, k] :
       {std::array<int64_t, 3>{64, 64, 256}, {128, 64, 256}, {64, 128, 256}})
    for (bool transposeA : {false, true})
      EXPECT_GE(PackedGemm(commandOf(m, n, k, transposeA)).numTiles(), 2)
          << m << "x" << n << "x" << k;
}

/// Rows and columns of a GEMM on their own have the bits that they have in it:
/// so several devices compute what one computes.
TEST(PackedGemmTest, PartsHaveTheBitsOfTheWhole) {
  for (const KernelsOf &version : versions())
    for (int which = 0; version.canRun && which < 4; ++which) {
      GemmCommand gemm =
          commandOf(240, 320, 900, /*transposeA=*/false, which & 1);
      gemm.activation = which & 2 ? Activation::Relu : Activation::None;
      const bool hasBias = which & 2;
      Operands operands(gemm);
      std::vector<float> whole = computeGemm(
          PackedGemm(gemm, {}, *version.kernels), operands, hasBias);
      for (int64_t parts : {2, 3, 8, 20, 240}) {
        GemmCommand part = gemm;
        part.m /= parts;
        for (int64_t index = 0; index < parts; index += isSanitized ? 7 : 1) {
          Operands rows = operands;
          rows.a.erase(rows.a.begin(),
                       rows.a.begin() + index * part.m * part.k);
          std::vector<float> c = computeGemm(
              PackedGemm(part, {}, *version.kernels), rows, hasBias, 2);
          ASSERT_EQ(0, std::memcmp(c.data(), &whole[index * part.m * part.n],
                                   part.m * part.n * sizeof(float)))
              << version.name << ", " << which << ", " << index << " of "
              << parts;
        }
      }
    }
}

/// A matrix of `rows` rows in pieces with NaN around them, at equal distances.
struct InPieces {
  InPieces(const std::vector<float> &matrix, int64_t rows, int64_t columns,
           int64_t extent, bool areRows)
      : pieces{extent, areRows, (areRows ? columns : extent) + 3} {
    pieces.distance = (areRows ? extent : rows) * pieces.rowStride + 64;
    const int64_t all = areRows ? rows : columns;
    memory.assign((all + extent - 1) / extent * pieces.distance, NAN);
    for (int64_t begin = 0; begin < all; begin += extent) {
      float *piece = &memory[begin / extent * pieces.distance];
      addresses.push_back(piece);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column)
          if (int64_t place = (areRows ? row : column) - begin;
              place >= 0 && place < extent)
            piece[(areRows ? place : row) * pieces.rowStride +
                  (areRows ? column : place)] = matrix[row * columns + column];
    }
  }
  /// As if they were anywhere: with a list of their addresses.
  MatrixPieces listed() const {
    MatrixPieces anywhere = pieces;
    anywhere.distance = 0;
    return anywhere;
  }

  MatrixPieces pieces;
  std::vector<float> memory;
  std::vector<const void *> addresses;
};

TEST(PackedGemmTest, FactorsInPiecesHaveTheBitsOfWholeOnes) {
  const int64_t shapes[][3] = {{1, 1, 1},      {5, 70, 400},   {33, 31, 37},
                               {97, 101, 103}, {100, 7, 400},  {145, 129, 1},
                               {20, 300, 129}, {131, 517, 401}};
  for (const KernelsOf &version : versions())
    for (const auto &[m, n, k] : shapes)
      for (int which = 0; version.canRun && which < 16; ++which) {
        if (isSanitized && m * n * k > 1 << 20 && which % 5 != 0)
          continue;
        GemmCommand gemm = commandOf(m, n, k, which & 1, which & 2);
        gemm.accumulate = which & 8;
        gemm.precision = which & 8 ? Precision::TF32 : Precision::Highest;
        Operands whole(gemm);
        std::vector<float> expected =
            computeGemm(PackedGemm(gemm, {}, *version.kernels), whole, false);
        for (int64_t extent : {3, 45, 128}) {
          if (isSanitized && extent != 45)
            continue;
          const bool areRows = which & 4;
          InPieces a(whole.a, gemm.transposeA ? k : m, gemm.transposeA ? m : k,
                     extent, areRows);
          InPieces b(whole.b, gemm.transposeB ? n : k, gemm.transposeB ? k : n,
                     extent, !areRows);
          // Of each factor: whole, listed, or at equal distances.
          for (int factors = 1; factors < 9; ++factors) {
            GemmPieces pieces;
            GemmOperands addresses{whole.a.data(), whole.b.data(), nullptr,
                                   nullptr};
            if (factors % 3 == 1)
              pieces.a = a.listed(), addresses.a = a.addresses.data();
            if (factors % 3 == 2)
              pieces.a = a.pieces, addresses.a = a.memory.data();
            if (factors / 3 == 1)
              pieces.b = b.listed(), addresses.b = b.addresses.data();
            if (factors / 3 == 2)
              pieces.b = b.pieces, addresses.b = b.memory.data();
            PackedGemm packed(gemm, {}, *version.kernels, 1, pieces);
            std::vector<float> panels(packed.packedBytes() / sizeof(float),
                                      NAN);
            std::vector<float> c = whole.c;
            addresses.c = c.data();
            addresses.packed = panels.data();
            WorkerPool pool(1);
            pool.run(
                [&](int worker) { runGemm(packed, addresses, pool, worker); });
            ASSERT_TRUE(haveEqualBits(c, expected))
                << version.name << " " << m << "x" << n << "x" << k << ", "
                << which << ", pieces of " << extent << ", " << factors;
          }
        }
      }
}

TEST(PackedGemmTest, ResultsInBlocksOfColumnsHaveTheBitsOfWholeOnes) {
  for (const KernelsOf &version : versions())
    for (const auto &[m, n, k] : {std::array<int64_t, 3>{1, 32, 1},
                                  {5, 96, 70},
                                  {33, 192, 129},
                                  {20, 960, 128},
                                  {131, 576, 401},
                                  {523, 96, 100}})
      for (int which = 0; version.canRun && which < 8; ++which) {
        GemmCommand gemm = commandOf(m, n, k, which & 1, which & 2);
        gemm.accumulate = which & 4;
        gemm.activation = which & 2 ? Activation::Relu : Activation::None;
        Operands operands(gemm);
        for (int64_t calls : {1, 8}) {
          if (isSanitized && calls == 1)
            continue;
          std::vector<float> expected =
              computeGemm(PackedGemm(gemm, {}, *version.kernels), operands,
                          /*hasBias=*/true);
          for (int64_t width : {32, 96, 192}) {
            if (n % width != 0)
              continue;
            auto toBlocks = [&, n = n, m = m](std::vector<float> c) {
              std::vector<float> from = c;
              for (int64_t i = 0; i < m * n; ++i)
                c[i % n / width * width * m + i / n * width + i % n % width] =
                    from[i];
              return c;
            };
            Operands inBlocks = operands;
            inBlocks.c = toBlocks(operands.c);
            GemmPieces pieces;
            pieces.columnsOfC = width;
            PackedGemm packed(gemm, {calls, calls, calls}, *version.kernels, 1,
                              pieces);
            EXPECT_TRUE(haveEqualBits(computeGemm(packed, inBlocks, true, 2),
                                      toBlocks(expected)))
                << version.name << " " << m << "x" << n << "x" << k << ", "
                << which << ", blocks of " << width;
          }
        }
      }
}

/// The sum of nodes of the tree, each the result of a GEMM of its own.
std::vector<float> sumOf(const std::vector<std::vector<float>> &addends,
                         size_t first, size_t count) {
  if (count == 1)
    return addends[first];
  size_t left = leavesOfLeft(count);
  std::vector<float> sum = sumOf(addends, first, left);
  std::vector<float> right = sumOf(addends, first + left, count - left);
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += right[i];
  return sum;
}

TEST(PackedGemmTest, SumsHaveTheBitsOfTheirTree) {
  const int64_t shapes[][3] = {{1, 1, 1},      {7, 33, 5},     {50, 20, 16},
                               {20, 50, 90},   {97, 101, 130}, {200, 300, 70},
                               {7, 2048, 97},  {3, 2048, 89},  {300, 1100, 16},
                               {1100, 300, 16}};
  for (const KernelsOf &version : versions())
    for (const auto &[m, n, k] : shapes)
      for (int64_t addends = 2; version.canRun && addends <= 9; ++addends)
        for (int which = 0; which < 4; ++which) {
          GemmCommand gemm = commandOf(m, n, k, which & 1, which & 2);
          if (!PackedGemm::canAdd(gemm, addends) ||
              (isSanitized && (addends + 3 * which) % 6 != 0))
            continue;
          SCOPED_TRACE(testing::Message()
                       << version.name << ", " << addends << " of " << m << "x"
                       << n << "x" << k << ", " << which);
          std::vector<Operands> operands;
          std::vector<std::vector<float>> results;
          std::vector<const void *> factors, a, b;
          for (int64_t i = 0; i < addends; ++i) {
            operands.emplace_back(gemm, i + 1);
            results.push_back(computeGemm(
                PackedGemm(gemm, {}, *version.kernels), operands[i], false));
            results.back().resize(m * n);
          }
          for (const Operands &one : operands) {
            factors.insert(factors.end(), {one.a.data(), one.b.data()});
            a.push_back(one.a.data());
            b.push_back(one.b.data());
          }
          std::vector<float> expected = sumOf(results, 0, addends);
          // Different numbers of tiles, with what is shared packed for all.
          for (int64_t calls : {1, 8}) {
            PackedGemm sum(gemm, {calls, calls, calls}, *version.kernels,
                           addends);
            std::vector<float> packed(sum.packedBytes() / sizeof(float), NAN),
                c(m * n, NAN);
            GemmOperands addresses{factors[0], factors[1],    nullptr,
                                   c.data(),   packed.data(), &factors[2]};
            bool isA = sum.sharedFactor() == PreparedGemm::SharedFactor::A;
            for (int64_t round = 0; round < sum.numRounds(); ++round) {
              // What a task stores beside its part is no part of later ones.
              for (int64_t task = sum.numPackTasks(round); task-- > 0;)
                sum.pack(isA ? a.data() : b.data(), packed.data(), round, task);
              for (int64_t tile = sum.numTiles(); tile-- > 0;)
                sum.run(addresses, round, tile);
            }
            EXPECT_TRUE(haveEqualBits(c, expected));
          }
        }
}

// A panel of few rows is narrower than a vector.
TEST(PackedGemmTest, TasksThatPackFewRowsStoreNothingElse) {
  for (const KernelsOf &version : versions())
    for (int64_t m : {1, 2, 3, 5, 7})
      for (int64_t k : {386, 393}) {
        if (!version.canRun)
          continue;
        GemmCommand gemm = commandOf(m, 2048, k);
        gemm.precision = Precision::TF32; // Then rows are packed.
        Operands operands(gemm);
        std::vector<float> results[2];
        for (bool ascends : {false, true}) {
          PackedGemm packed(gemm, {}, *version.kernels);
          bool isA = packed.sharedFactor() == PreparedGemm::SharedFactor::A;
          std::vector<float> panels(packed.packedBytes() / sizeof(float) + 16,
                                    -1);
          const void *a = operands.a.data(), *b = operands.b.data();
          results[ascends] = operands.c;
          GemmOperands addresses{a, b, nullptr, results[ascends].data(),
                                 panels.data()};
          for (int64_t round = 0; round < packed.numRounds(); ++round) {
            const int64_t tasks = packed.numPackTasks(round);
            for (int64_t task = 0; task < tasks; ++task)
              packed.pack(isA ? &a : &b, panels.data(), round,
                          ascends ? task : tasks - 1 - task);
            for (int64_t tile = 0; tile < packed.numTiles(); ++tile)
              packed.run(addresses, round, tile);
          }
          for (size_t i = panels.size() - 16; i < panels.size(); ++i)
            EXPECT_EQ(panels[i], -1);
        }
        EXPECT_TRUE(haveEqualBits(results[0], results[1])) << m << ", " << k;
      }
}

TEST(PackedGemmTest, SumsThatNeedMemoryAreNone) {
  GemmCommand gemm = commandOf(16, 16, 128);
  EXPECT_TRUE(PackedGemm::canAdd(gemm, 6));
  EXPECT_FALSE(PackedGemm::canAdd(gemm, 7)); // Four blocks of two.
  EXPECT_FALSE(PackedGemm::canAdd(commandOf(16, 16, 385), 2));
  EXPECT_TRUE(PackedGemm::canAdd(commandOf(16, 16, 384), 3));
  EXPECT_FALSE(PackedGemm::canAdd(commandOf(16, 16, 0), 2));
  gemm.activation = Activation::Relu;
  EXPECT_FALSE(PackedGemm::canAdd(gemm, 2));
}

TEST(PackedGemmTest, EveryElementIsPacked) {
  for (const auto &[m, n, k] :
       {std::array<int64_t, 3>{131, 517, 3001}, {523, 127, 3001}}) {
    GemmCommand gemm = commandOf(m, n, k);
    PackedGemm packed(gemm);
    bool isA = packed.sharedFactor() == PreparedGemm::SharedFactor::A;
    // Every element has its own number, which it is found by.
    std::vector<float> factor((isA ? m : n) * k);
    for (size_t i = 0; i < factor.size(); ++i)
      factor[i] = float(i + 1);
    std::set<float> found;
    const void *data = factor.data();
    for (int64_t round = 0; round < packed.numRounds(); ++round) {
      std::vector<float> panels(packed.packedBytes() / sizeof(float), 0);
      for (int64_t task = packed.numPackTasks(round); task-- > 0;)
        packed.pack(&data, panels.data(), round, task);
      for (float value : panels)
        if (value != 0)
          found.insert(value);
    }
    EXPECT_EQ(found.size(), factor.size());
  }
}

TEST(PackedGemmTest, MemoryForPackedFactorsIsBounded) {
  for (int64_t calls : {1, 8}) {
    PackedGemm large(commandOf(4096, 4096, 65536), {calls, calls, calls});
    EXPECT_GT(large.numRounds(), 1);
    // 4 MiB, or one block of terms of each call.
    EXPECT_LE(large.packedBytes() * calls,
              std::max<uint64_t>(4 << 20, calls * 4096 * 384 * 4) * 5 / 4);
  }
}

/// Operands of bf16, numbers from -1 to 1 times `scale`, beside the same in
/// f32.
struct HalfOperands {
  HalfOperands(const GemmCommand &gemm, float scale) : wide(gemm) {
    auto narrow = [&](std::vector<float> &values, float by) {
      std::vector<uint16_t> narrowed(values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        narrowed[i] = toBF16(values[i] * by);
        values[i] = fromBF16(narrowed[i]);
      }
      return narrowed;
    };
    a = narrow(wide.a, scale);
    b = narrow(wide.b, scale);
    bias = narrow(wide.bias, scale * scale);
    c = narrow(wide.c, scale * scale);
  }

  Operands wide;
  std::vector<uint16_t> a, b, bias, c;
};

/// c of a GEMM of bf16, widened if the result is bf16.
std::vector<float> computeHalfGemm(const GemmCommand &gemm,
                                   const MicroKernels &kernels,
                                   HalfOperands operands, DType result,
                                   bool hasBias, GemmCalls calls = {},
                                   int workers = 1) {
  PackedGemm packed(gemm, calls, kernels, 1, {}, {DType::BF16, result});
  std::vector<float> memory(packed.packedBytes() / sizeof(float), NAN);
  const bool isHalf = result == DType::BF16;
  std::vector<float> &c = operands.wide.c;
  auto either = [&](std::vector<uint16_t> &half, std::vector<float> &wide) {
    return isHalf ? static_cast<void *>(half.data()) : wide.data();
  };
  GemmOperands addresses{operands.a.data(), operands.b.data(),
                         hasBias ? either(operands.bias, operands.wide.bias)
                                 : nullptr,
                         either(operands.c, c), memory.data()};
  WorkerPool pool(workers);
  pool.run([&](int worker) { runGemm(packed, addresses, pool, worker); });
  if (isHalf)
    std::transform(operands.c.begin(), operands.c.end(), c.begin(), fromBF16);
  return c;
}

/// One and several blocks of terms, whole pairs and a single last term; sums in
/// the range of f32 and below it, where they are 0 for all kernels.
TEST(PackedGemmTest, FactorsOfBF16HaveTheBitsOfTheShape) {
  const int64_t shapes[][3] = {
      {1, 1, 1},      {5, 7, 2},     {33, 7, 11},    {13, 15, 769},
      {7, 300, 9},    {300, 9, 5},   {97, 101, 103}, {31, 37, 1025},
      {45, 50, 2047}, {9, 20, 4100}, {20, 9, 3000},  {131, 260, 1100},
  };
  for (const auto &[m, n, k] : shapes)
    for (int which = 0; which < 32; ++which) {
      if (isSanitized && which % 3 != 0)
        continue;
      GemmCommand gemm = commandOf(m, n, k, which & 1, which & 2);
      gemm.accumulate = which & 4;
      const bool hasBias = which & 8;
      gemm.activation = hasBias ? Activation::Relu : Activation::None;
      const DType result = which & 16 ? DType::BF16 : DType::F32;
      for (float scale : {1.0f, 0x1p-70f}) {
        if (scale != 1 && which % 3 != 1)
          continue;
        const HalfOperands operands(gemm, scale);
        std::vector<float> first;
        for (const KernelsOf &version : versions()) {
          if (!version.canRun)
            continue;
          SCOPED_TRACE(version.name);
          std::vector<float> c = computeHalfGemm(gemm, *version.kernels,
                                                 operands, result, hasBias);
          if (scale == 1)
            expectNear(gemm, operands.wide, c, hasBias,
                       result == DType::BF16 ? 0x1p-8 : 0);
          // Multiply-adds of one rounding.
          if (version.kernels == &MicroKernels::portable())
            continue;
          if (first.empty())
            first = c;
          EXPECT_TRUE(haveEqualBits(c, first));
          // Other tiles, and more workers.
          if (which % 4 == 0) {
            c = computeHalfGemm(gemm, *version.kernels, operands, result,
                                hasBias, {8, 1, 8}, 3);
            EXPECT_TRUE(haveEqualBits(c, first));
          }
        }
      }
    }
}

/// Blocks of an odd number of terms, rounded up to whole pairs, and as many
/// rows as a thread has memory for.
TEST(PackedGemmTest, GroupsOfBF16FitTheirMemory) {
  for (const auto &[m, k] : {std::array<int64_t, 2>{60, 1842},
                             {66, 1674},
                             {56, 1974},
                             {70, 1578},
                             {60, 1841}}) {
    GemmCommand gemm = commandOf(m, 16, k);
    const HalfOperands operands(gemm, 1);
    for (const KernelsOf &version : versions()) {
      if (!version.canRun)
        continue;
      SCOPED_TRACE(version.name);
      expectNear(gemm, operands.wide,
                 computeHalfGemm(gemm, *version.kernels, operands, DType::F32,
                                 /*hasBias=*/false),
                 /*hasBias=*/false);
    }
  }
}

TEST(PackedGemmTest, NaNAndInfinityStay) {
  GemmCommand gemm = commandOf(30, 40, 20);
  gemm.activation = Activation::Relu;
  Operands operands(gemm);
  operands.a[3 * 20 + 4] = NAN;
  operands.b[5 * 40 + 6] = INFINITY;
  std::vector<float> c = computeGemm(PackedGemm(gemm), operands, true);
  for (int64_t j = 0; j < 40; ++j)
    EXPECT_TRUE(std::isnan(c[3 * 40 + j])) << j;
  EXPECT_TRUE(std::isinf(c[7 * 40 + 6]) || c[7 * 40 + 6] == 0);
  EXPECT_FALSE(std::isnan(c[7 * 40 + 7]));
}

} // namespace
