//===- ColumnSums.cpp - Sums over the rows of a matrix --------------------===//

#include "backends/cpu/ColumnSums.h"

#include "base/Convert.h"

#include <algorithm>

using namespace shardc::rt;

void ColumnSums::run(const void *matrix, void *sums, int64_t tile) const {
  int64_t first = tile * block, count = std::min(block, columns - first);
  float added[block] = {};
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = row * columns + first;
    if (element == DType::F32)
      for (int64_t i = 0; i < count; ++i)
        added[i] += static_cast<const float *>(matrix)[at + i];
    else
      for (int64_t i = 0; i < count; ++i)
        added[i] += fromBF16(static_cast<const uint16_t *>(matrix)[at + i]);
  }
  if (result == DType::F32)
    std::copy_n(added, count, static_cast<float *>(sums) + first);
  else
    std::transform(added, added + count, static_cast<uint16_t *>(sums) + first,
                   toBF16);
}
