//===- GemmTest.cpp - GEMMs against plain loops ---------------------------===//

#include "backends/cpu/Gemm.h"
#include "backends/cpu/ColumnSums.h"

#include "base/Convert.h"
#include "shardc-rt/HostArray.h"

#include "Sanitized.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

/// Small integers: exact in f32 and bf16, in any order.
float valueAt(int64_t i) { return float(i * 7 % 5 - 2); }

struct Case {
  int64_t batch, m, n, k;
};

/// Sizes, transposed factors, and the epilogue: 1 a bias, 2 a ReLU, 4 an
/// addition to the old result.
using Param = std::tuple<Case, bool, bool, int>;

class GemmTest : public testing::TestWithParam<Param> {};

/// Tasks of a kind from the last to the first: their order does not matter.
void runBackwards(const PreparedGemm &gemm, GemmOperands operands) {
  std::vector<float> packed(gemm.packedBytes() / sizeof(float), NAN);
  operands.packed = packed.data();
  bool isA = gemm.sharedFactor() == PreparedGemm::SharedFactor::A;
  for (int64_t round = 0; round < gemm.numRounds(); ++round) {
    for (int64_t task = gemm.numPackTasks(round); task-- > 0;)
      gemm.pack(isA ? &operands.a : &operands.b, packed.data(), round, task);
    for (int64_t tile = gemm.numTiles(); tile-- > 0;)
      gemm.run(operands, round, tile);
  }
}

GemmCommand commandOf(const Param &param) {
  auto [sizes, transposeA, transposeB, epilogue] = param;
  return {0,
          1,
          2,
          epilogue & 1 ? 3 : -1,
          sizes.batch,
          sizes.m,
          sizes.n,
          sizes.k,
          transposeA,
          transposeB,
          bool(epilogue & 4),
          epilogue & 2 ? Activation::Relu : Activation::None};
}

std::vector<float> values(int64_t size) {
  std::vector<float> result(size);
  for (int64_t i = 0; i < size; ++i)
    result[i] = valueAt(i + size);
  return result;
}

/// What `param` computes of values() of the sizes of its operands.
std::vector<float> expectedOf(const Param &param) {
  auto [sizes, transposeA, transposeB, epilogue] = param;
  auto [batch, m, n, k] = sizes;
  const std::vector<float> a = values(batch * m * k), b = values(batch * k * n),
                           bias = values(n);
  std::vector<float> c = values(batch * m * n);
  for (int64_t g = 0; g < batch; ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const float *left = &a[g * m * k + (transposeA ? i : i * k)];
        const float *right = &b[g * k * n + (transposeB ? j * k : j)];
        float &result = c[(g * m + i) * n + j];
        float sum = epilogue & 4 ? result : 0;
        for (int64_t l = 0; l < k; ++l)
          sum += left[transposeA ? l * m : l] * right[transposeB ? l : l * n];
        if (epilogue & 1)
          sum += bias[j];
        result = epilogue & 2 ? std::max(sum, 0.0f) : sum;
      }
  return c;
}

TEST_P(GemmTest, IsExactOnIntegers) {
  auto [batch, m, n, k] = std::get<Case>(GetParam());
  GemmCommand command = commandOf(GetParam());
  auto gemm = PreparedGemm::prepare(command, {DType::F32, DType::F32});
  std::vector<float> a = values(batch * m * k), b = values(batch * k * n),
                     bias = values(n), c = values(batch * m * n);
  runBackwards(*gemm, {a.data(), b.data(),
                       command.bias >= 0 ? bias.data() : nullptr, c.data()});
  EXPECT_EQ(c, expectedOf(GetParam()));
}

/// The same of bf16: the sum in f32, or that sum rounded once.
TEST_P(GemmTest, AddsUpGemmsOfBF16InF32) {
  auto [batch, m, n, k] = std::get<Case>(GetParam());
  GemmCommand command = commandOf(GetParam());
  const std::vector<float> expected = expectedOf(GetParam());
  for (DType result : {DType::F32, DType::BF16}) {
    auto gemm = PreparedGemm::prepare(command, {DType::BF16, result});
    HostArray a(DType::BF16, {batch * m * k}), b(DType::BF16, {batch * k * n}),
        bias(result, {n}), c(result, {batch * m * n});
    for (HostArray *array : {&a, &b, &bias, &c})
      for (int64_t i = 0; i < array->shape[0]; ++i)
        if (array->dtype == DType::BF16)
          array->values<uint16_t>()[i] = toBF16(valueAt(i + array->shape[0]));
        else
          array->values<float>()[i] = valueAt(i + array->shape[0]);
    runBackwards(*gemm, {a.data.data(), b.data.data(),
                         command.bias >= 0 ? bias.data.data() : nullptr,
                         c.data.data()});
    for (int64_t i = 0; i < batch * m * n; ++i)
      if (result == DType::F32)
        ASSERT_EQ(c.values<float>()[i], expected[i]) << i;
      else
        ASSERT_EQ(c.values<uint16_t>()[i], toBF16(expected[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GemmTest,
    testing::Combine(testing::Values(Case{1, 5, 7, 3}, Case{1, 1, 1, 1},
                                     Case{2, 6, 4, 9}, Case{1, 300, 170, 220},
                                     Case{1, 90, 400, 260},
                                     Case{1, 37, 10, 1100}, Case{2, 50, 33, 7},
                                     Case{1, 700, 16, 130},
                                     Case{1, 100, 900, 16}),
                     testing::Bool(), testing::Bool(),
                     testing::Range(0, 8, isSanitized ? 3 : 1)));

TEST(GemmTest, RoundsToFractionsToNearestEven) {
  float one = 1;
  for (auto [precision, bits] :
       {std::pair{Precision::TF32, 10}, std::pair{Precision::BF16, 7}}) {
    float unit = std::ldexp(one, -bits);
    EXPECT_EQ(roundTo(precision, 1 + unit), 1 + unit);
    EXPECT_EQ(roundTo(precision, 1 + unit / 2), 1);
    EXPECT_EQ(roundTo(precision, 1 + 3 * unit / 2), 1 + 2 * unit);
    EXPECT_EQ(roundTo(precision, -1 - 5 * unit / 8), -1 - unit);
    EXPECT_EQ(roundTo(precision, 2 - unit / 4), 2);
    EXPECT_EQ(roundTo(precision, 0), 0);
    EXPECT_EQ(roundTo(precision, -INFINITY), -INFINITY);
    EXPECT_TRUE(std::isnan(roundTo(precision, NAN)));
  }
  EXPECT_EQ(roundTo(Precision::Highest, 1 + 0x1p-23f), 1 + 0x1p-23f);
}

/// Factors of 20 bits: the GEMM of the rounded ones, and not of others.
TEST(GemmTest, RoundsFactorsOfLesserPrecision) {
  for (Precision precision : {Precision::TF32, Precision::BF16})
    for (Case sizes : {Case{2, 6, 4, 9}, Case{1, 300, 170, 220}}) {
      auto [batch, m, n, k] = sizes;
      GemmCommand command{0,        1, 2,    3,     batch, m,
                          n,        k, true, false, true,  Activation::None,
                          precision};
      auto gemm = PreparedGemm::prepare(command, {DType::F32, DType::F32});
      std::vector<float> a(batch * m * k), b(batch * k * n), bias(n),
          c(batch * m * n);
      for (std::vector<float> *values : {&a, &b, &bias, &c})
        for (size_t i = 0; i < values->size(); ++i)
          (*values)[i] =
              float((i + values->size()) * 7919 % (1 << 20)) / (1 << 20);
      std::vector<float> before(c);
      runBackwards(*gemm, {a.data(), b.data(), bias.data(), c.data()});
      double farthest = 0;
      for (int64_t g = 0; g < batch; ++g)
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            int64_t at = (g * m + i) * n + j;
            double rounded = double(before[at]) + bias[j], plain = rounded;
            for (int64_t l = 0; l < k; ++l) {
              float x = a[g * m * k + l * m + i], y = b[g * k * n + l * n + j];
              plain += double(x) * y;
              rounded += double(roundTo(precision, x)) * roundTo(precision, y);
            }
            ASSERT_NEAR(c[at], rounded, 2e-6 * rounded);
            farthest = std::max(farthest, std::fabs(plain / rounded - 1));
          }
      EXPECT_GT(farthest, 1e-5);
    }
}

/// More columns than one tile has.
TEST(GemmTest, SumsOfColumns) {
  GemmCommand command{};
  command.k = 7;
  for (bool ofA : {false, true})
    for (DType factors : {DType::F32, DType::BF16})
      for (DType result : {factors, DType::F32}) {
        const int64_t columns = 600;
        (ofA ? command.m : command.n) = columns;
        command.columnSumsOf = ofA ? Summed::A : Summed::B;
        std::vector<float> wide(command.k * columns), expected(columns);
        std::vector<uint16_t> narrow(wide.size());
        for (size_t i = 0; i < wide.size(); ++i) {
          wide[i] = valueAt(i);
          narrow[i] = toBF16(wide[i]);
          expected[i % columns] += wide[i];
        }
        std::vector<float> sums(columns, -1);
        std::vector<uint16_t> narrowSums(columns, 1);
        ColumnSums prepared(command, {factors, result});
        for (int64_t tile = prepared.numTiles(); tile-- > 0;)
          prepared.run(factors == DType::F32
                           ? static_cast<const void *>(wide.data())
                           : narrow.data(),
                       result == DType::F32 ? static_cast<void *>(sums.data())
                                            : narrowSums.data(),
                       tile);
        if (result == DType::BF16)
          std::transform(narrowSums.begin(), narrowSums.end(), sums.begin(),
                         fromBF16);
        EXPECT_EQ(sums, expected);
      }
}

TEST(GemmTest, RoundsOnceToBF16) {
  // The sum is 256 + 1 + 1: rounded after each addition it would stay at 256.
  // Infinities and NaN stay.
  uint16_t a[] = {toBF16(256), toBF16(1), toBF16(1), toBF16(INFINITY), 0, 0,
                  toBF16(NAN), 0,         0};
  uint16_t b[] = {toBF16(1), toBF16(1), toBF16(1)}, c[3];
  GemmCommand command{0, 1, 2,     -1,    1,     3,
                      1, 3, false, false, false, Activation::None};
  auto gemm = PreparedGemm::prepare(command, {DType::BF16, DType::BF16});
  runBackwards(*gemm, {a, b, nullptr, c});
  EXPECT_EQ(fromBF16(c[0]), 258);
  EXPECT_EQ(fromBF16(c[1]), INFINITY);
  EXPECT_TRUE(std::isnan(fromBF16(c[2])));
}

TEST(GemmTest, EmptyGemms) {
  GemmCommand none{0, 1, 2,     -1,    1,     0,
                   4, 3, false, false, false, Activation::None};
  for (DType type : {DType::F32, DType::BF16}) {
    auto empty = PreparedGemm::prepare(none, {type, type});
    EXPECT_EQ(empty->numTiles(), 0);
    EXPECT_EQ(empty->packedBytes(), 0u);
    for (int64_t round = 0; round < empty->numRounds(); ++round)
      EXPECT_EQ(empty->numPackTasks(round), 0);
  }
  GemmCommand zero{0, 1, 2,     -1,    1,     2,
                   2, 0, false, false, false, Activation::None};
  float c[4] = {1, 2, 3, 4};
  auto gemm = PreparedGemm::prepare(zero, {DType::F32, DType::F32});
  runBackwards(*gemm, {nullptr, nullptr, nullptr, c});
  EXPECT_EQ(c[3], 0.0f);
  uint16_t halves[4] = {1, 2, 3, 4};
  gemm = PreparedGemm::prepare(zero, {DType::BF16, DType::BF16});
  runBackwards(*gemm, {nullptr, nullptr, nullptr, halves});
  EXPECT_EQ(halves[3], 0);
}

} // namespace
