//===- HalfGemm.cpp - GEMMs of bf16 ---------------------------------------===//

#include "backends/cpu/HalfGemm.h"

#include "backends/cpu/PackedGemm.h"
#include "base/Convert.h"
#include "base/VectorClones.h"

#include <cstring>
#include <vector>

using namespace shardc::rt;

/// Largest sides of a block: its factors and its result take 2 MiB of f32, and
/// converting them a hundredth of the time of multiplying them.
static constexpr int64_t maxRows = 256, maxColumns = 512, maxDepth = 512;

SHARDC_VECTOR_CLONES
static void widen(const uint16_t *__restrict from, float *__restrict to,
                  int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    std::memcpy(&to[i], &bits, sizeof(bits));
  }
}

/// As `toBF16`, without branches.
SHARDC_VECTOR_CLONES
static void narrow(const float *__restrict from, uint16_t *__restrict to,
                   int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &from[i], sizeof(bits));
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
    to[i] = static_cast<uint16_t>(isNaN ? bits >> 16 | 0x40 : rounded);
  }
}

namespace {

/// A factor in memory: rows of `stride` elements.
struct HalfMatrix {
  const uint16_t *data;
  int64_t stride;
  bool isTransposed;

  /// Converts the block of `rows` x `columns` at (row, column) of the matrix,
  /// or of its transpose, in the order of memory.
  void widenBlock(int64_t row, int64_t column, int64_t rows, int64_t columns,
                  float *to) const {
    if (isTransposed) {
      std::swap(row, column);
      std::swap(rows, columns);
    }
    for (int64_t i = 0; i < rows; ++i)
      widen(data + (row + i) * stride + column, to + i * columns, columns);
  }
};

} // namespace

void HalfGemm::run(const GemmOperands &operands, int64_t /*round*/,
                   int64_t index) const {
  const void *bias = operands.bias;
  void *c = operands.c;
  Tile tile = tileOf(gemm, tiling, index);
  HalfMatrix left{static_cast<const uint16_t *>(operands.a) + tile.a,
                  gemm.transposeA ? gemm.m : gemm.k, gemm.transposeA};
  HalfMatrix right{static_cast<const uint16_t *>(operands.b) + tile.b,
                   gemm.transposeB ? gemm.k : gemm.n, gemm.transposeB};
  int64_t blockRows = std::min(tile.m, maxRows);
  int64_t blockColumns = std::min(tile.n, maxColumns);
  int64_t depth = std::min(gemm.k, maxDepth);
  // Each worker has its own, which grows in the first step.
  static thread_local std::vector<float> scratch;
  size_t needed = depth * (blockRows + blockColumns) + blockColumns +
                  blockRows * blockColumns;
  if (scratch.size() < needed)
    scratch.resize(needed);
  float *wideA = scratch.data(), *wideB = wideA + blockRows * depth;
  float *wideBias = wideB + depth * blockColumns;
  float *sums = wideBias + blockColumns;

  auto forEachRow = [&](int64_t row, int64_t column, int64_t rows,
                        int64_t columns, auto visit) {
    for (int64_t i = 0; i < rows; ++i)
      visit(tile.c + (row + i) * gemm.n + column, sums + i * columns);
  };
  for (int64_t column = 0; column < tile.n; column += blockColumns) {
    int64_t columns = std::min(blockColumns, tile.n - column);
    const float *addend = nullptr;
    if (bias && isResultHalf) {
      widen(static_cast<const uint16_t *>(bias) + tile.bias + column, wideBias,
            columns);
      addend = wideBias;
    } else if (bias) {
      addend = static_cast<const float *>(bias) + tile.bias + column;
    }
    for (int64_t row = 0; row < tile.m; row += blockRows) {
      int64_t rows = std::min(blockRows, tile.m - row);
      if (gemm.k == 0 && !gemm.accumulate)
        std::fill(sums, sums + rows * columns, 0.0f);
      if (gemm.accumulate)
        forEachRow(row, column, rows, columns, [&](int64_t at, float *sum) {
          if (isResultHalf)
            widen(static_cast<const uint16_t *>(c) + at, sum, columns);
          else
            std::memcpy(sum, static_cast<const float *>(c) + at,
                        columns * sizeof(float));
        });
      for (int64_t k = 0; k < gemm.k; k += depth) {
        int64_t terms = std::min(depth, gemm.k - k);
        left.widenBlock(row, k, rows, terms, wideA);
        right.widenBlock(k, column, terms, columns, wideB);
        GemmCommand block{};
        block.batch = 1;
        block.m = rows, block.n = columns, block.k = terms;
        block.transposeA = gemm.transposeA;
        block.transposeB = gemm.transposeB;
        block.accumulate = gemm.accumulate || k > 0;
        PackedGemm::multiply(block, wideA, wideB, sums);
      }
      forEachRow(row, column, rows, columns, [&](int64_t at, float *sum) {
        finishRow(sum, addend, gemm.activation == Activation::Relu, columns);
        if (isResultHalf)
          narrow(sum, static_cast<uint16_t *>(c) + at, columns);
        else
          std::memcpy(static_cast<float *>(c) + at, sum,
                      columns * sizeof(float));
      });
    }
  }
}
