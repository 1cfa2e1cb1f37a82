//===- ReluMask.h - Where the result of a relu is positive ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_RELUMASK_H
#define SHARDC_RT_SRC_BACKENDS_CPU_RELUMASK_H

#include "plan/PlanSpec.h"

namespace shardc::rt {

/// The mask of a GEMM, written or applied after it: a GPU's library includes
/// it, a CPU goes over the result once more. Bit j%32 of word j/32 of a row is
/// that of column j; bits behind the last column are 0. Tiles are whole rows,
/// so that no two of them touch the same word. Thread-safe.
class ReluMask {
public:
  ReluMask(const GemmCommand &command, DType result)
      : rows(command.m), columns(command.n), words(command.maskWords()),
        result(result) {}

  int64_t numTiles() const { return (rows + block - 1) / block; }
  /// Notes where the elements of `c` are positive: not at 0 nor at NaN.
  void write(const void *c, void *mask, int64_t tile) const;
  /// Sets all elements of `c` without a bit in the mask to zero, NaN included.
  void apply(const void *mask, void *c, int64_t tile) const;

private:
  /// Rows of a tile.
  static constexpr int64_t block = 16;

  int64_t rows, columns, words;
  DType result;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_RELUMASK_H
