//===- ReluMaskTest.cpp - The meaning of relu masks -----------------------===//

#include "backends/cpu/ReluMask.h"
#include "backends/cpu/ColumnSums.h"

#include "base/Convert.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace shardc::rt;

namespace {

/// More rows than one tile has.
constexpr int64_t rows = 37;

/// Among others both zeros, NaN, infinities and a subnormal number.
float maskInputAt(int64_t i) {
  constexpr float values[] = {1,
                              -2,
                              0,
                              -0.0f,
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              1e-39f};
  return i % 11 < 8 ? values[i % 11] : i % 7 - 3;
}

GemmCommand maskCommandOf(int64_t columns) {
  GemmCommand command{};
  command.m = rows;
  command.n = columns;
  return command;
}

/// A result of f32 or bf16 with `values`.
class Result {
public:
  Result(DType dtype, const std::vector<float> &values)
      : dtype(dtype), wide(values) {
    for (float value : values)
      narrow.push_back(toBF16(value));
  }
  void *data() {
    return dtype == DType::F32 ? static_cast<void *>(wide.data())
                               : narrow.data();
  }
  float operator[](size_t i) const {
    return dtype == DType::F32 ? wide[i] : fromBF16(narrow[i]);
  }

private:
  DType dtype;
  std::vector<float> wide;
  std::vector<uint16_t> narrow;
};

class ReluMaskTest : public testing::TestWithParam<std::tuple<DType, int64_t>> {
};

TEST_P(ReluMaskTest, KeepsWhatWasPositive) {
  auto [dtype, columns] = GetParam();
  GemmCommand command = maskCommandOf(columns);
  int64_t words = command.maskWords();
  EXPECT_EQ(words % 4, 0);
  EXPECT_GE(words * 32, columns);
  EXPECT_LT(words * 32, columns + 128);
  std::vector<float> values, gradients;
  for (int64_t i = 0; i < rows * columns; ++i) {
    values.push_back(maskInputAt(i));
    // NaN meets bits that are not set, too.
    gradients.push_back(maskInputAt(i / 3 + 5));
  }
  Result relu(dtype, values), gradient(dtype, gradients);
  const Result before = gradient;
  ReluMask mask(command, dtype);
  std::vector<uint32_t> bits(rows * words, 0xdeadbeef);
  for (int64_t tile = mask.numTiles(); tile-- > 0;)
    mask.write(relu.data(), bits.data(), tile);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t bit = 0; bit < words * 32; ++bit)
      ASSERT_EQ(bits[row * words + bit / 32] >> bit % 32 & 1,
                bit < columns && relu[row * columns + bit] > 0)
          << row << " " << bit;
  for (int64_t tile = mask.numTiles(); tile-- > 0;)
    mask.apply(bits.data(), gradient.data(), tile);
  for (int64_t i = 0; i < rows * columns; ++i) {
    float expected = relu[i] > 0 ? before[i] : 0;
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(gradient[i])) << i;
      continue;
    }
    ASSERT_EQ(gradient[i], expected) << i;
    ASSERT_TRUE(relu[i] > 0 || !std::signbit(gradient[i])) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ReluMaskTest,
    testing::Combine(testing::Values(DType::F32, DType::BF16),
                     testing::Values(0, 1, 31, 32, 100, 128, 129, 300)));

TEST(ReluMaskTest, SumsOfColumnsOfTheResult) {
  GemmCommand command = maskCommandOf(300);
  command.columnSumsOf = Summed::C;
  std::vector<float> values, expected(command.n);
  for (int64_t i = 0; i < rows * command.n; ++i) {
    values.push_back(i % 7 - 3);
    expected[i % command.n] += values.back();
  }
  for (DType dtype : {DType::F32, DType::BF16}) {
    Result result(dtype, values);
    Result sums(dtype, std::vector<float>(command.n, -1));
    // The factors are never looked at.
    ColumnSums prepared(command, {DType::BF16, dtype});
    for (int64_t tile = 0; tile < prepared.numTiles(); ++tile)
      prepared.run(result.data(), sums.data(), tile);
    for (int64_t i = 0; i < command.n; ++i)
      ASSERT_EQ(sums[i], fromBF16(toBF16(expected[i]))) << i;
  }
}

} // namespace
