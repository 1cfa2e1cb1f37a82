//===- ReluMask.cpp - Where the result of a relu is positive --------------===//

#include "backends/cpu/ReluMask.h"

#include "base/Convert.h"

#include <algorithm>

using namespace shardc::rt;

static bool isPositive(float value) { return value > 0; }
static bool isPositive(uint16_t value) { return fromBF16(value) > 0; }

/// Calls `visit(word, first, last)` for each word of a row that has bits for
/// columns [first, last).
template <typename Visit>
static void forEachWord(int64_t columns, Visit visit) {
  for (int64_t first = 0; first < columns; first += 32)
    visit(first / 32, first, std::min(first + 32, columns));
}

template <typename T>
static void writeRow(const T *row, uint32_t *bits, int64_t columns,
                     int64_t words) {
  std::fill(bits, bits + words, 0);
  forEachWord(columns, [&](int64_t word, int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j)
      bits[word] |= uint32_t(isPositive(row[j])) << (j - first);
  });
}

template <typename T>
static void applyRow(const uint32_t *bits, T *row, int64_t columns) {
  forEachWord(columns, [&](int64_t word, int64_t first, int64_t last) {
    for (int64_t j = first; j < last; ++j)
      row[j] = bits[word] >> (j - first) & 1 ? row[j] : T(0);
  });
}

void ReluMask::write(const void *c, void *mask, int64_t tile) const {
  int64_t end = std::min((tile + 1) * block, rows);
  for (int64_t row = tile * block; row < end; ++row) {
    uint32_t *bits = static_cast<uint32_t *>(mask) + row * words;
    if (result == DType::F32)
      writeRow(static_cast<const float *>(c) + row * columns, bits, columns,
               words);
    else
      writeRow(static_cast<const uint16_t *>(c) + row * columns, bits, columns,
               words);
  }
}

void ReluMask::apply(const void *mask, void *c, int64_t tile) const {
  int64_t end = std::min((tile + 1) * block, rows);
  for (int64_t row = tile * block; row < end; ++row) {
    const uint32_t *bits = static_cast<const uint32_t *>(mask) + row * words;
    if (result == DType::F32)
      applyRow(bits, static_cast<float *>(c) + row * columns, columns);
    else
      applyRow(bits, static_cast<uint16_t *>(c) + row * columns, columns);
  }
}
