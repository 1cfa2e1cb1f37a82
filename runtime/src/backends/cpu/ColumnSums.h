//===- ColumnSums.h - Sums over the rows of a matrix ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_COLUMNSUMS_H
#define SHARDC_RT_SRC_BACKENDS_CPU_COLUMNSUMS_H

#include "plan/PlanSpec.h"

namespace shardc::rt {

/// The sums of columns of a GEMM, computed after it: a GPU's library includes
/// them, a CPU reads the matrix once more. The work is cut by shape alone, and
/// rows are added in order: any number of workers gives the same bits.
/// Thread-safe.
class ColumnSums {
public:
  ColumnSums(const GemmCommand &command, GemmTypes types)
      : rows(command.k), columns(command.numColumnSums()),
        element(types.factors), result(types.result) {}

  int64_t numTiles() const { return (columns + block - 1) / block; }
  /// Sums tile `tile` of the columns of `matrix` in f32 and stores them in
  /// `sums`, as the GEMM's result is stored.
  void run(const void *matrix, void *sums, int64_t tile) const;

private:
  /// Columns of a tile: their sums stay in registers or the nearest cache.
  static constexpr int64_t block = 256;

  int64_t rows, columns;
  DType element, result;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_COLUMNSUMS_H
