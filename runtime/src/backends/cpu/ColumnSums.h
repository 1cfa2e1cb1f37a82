//===- ColumnSums.h - Sums over the rows of a factor ------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CPU_COLUMNSUMS_H
#define SHARDC_RT_SRC_BACKENDS_CPU_COLUMNSUMS_H

#include "shardc-rt/Plan.h"

namespace shardc::rt {

/// What a product with sums of columns leaves to be done after it: GPUs have
/// them from their library, a CPU reads the factor once more. Cut by shape
/// alone, and rows are added in order: any number of workers gives the same
/// bits. Thread-safe.
class ColumnSums {
public:
  ColumnSums(const GemmCommand &command, GemmTypes types)
      : rows(command.k), columns(command.columnSumsOfA ? command.m : command.n),
        types(types) {}

  int64_t numTiles() const { return (columns + block - 1) / block; }
  /// Sums tile `tile` of the columns of `factor` in f32 and stores them in
  /// `sums`, as the product's result is stored.
  void run(const void *factor, void *sums, int64_t tile) const;

private:
  /// Columns of a tile: their sums stay in registers or the nearest cache.
  static constexpr int64_t block = 256;

  int64_t rows, columns;
  GemmTypes types;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BACKENDS_CPU_COLUMNSUMS_H
