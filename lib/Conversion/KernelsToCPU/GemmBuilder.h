//===- GemmBuilder.h - GEMMs on register tiles ------------------*- C++ -*-===//
//
// A tile of rows × two vectors of columns is accumulated in registers over the
// whole contraction and then goes through the epilogue. The order of additions
// depends on shapes alone. Where the columns of the second factor do not lie
// side by side, those of a panel are first copied to the stack.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_GEMMBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_GEMMBUILDER_H

#include "NestBuilder.h"

namespace shardc {

/// Builds a GEMM and its epilogue, for sizes too small for a library.
class GemmBuilder : public NestBuilder {
public:
  using NestBuilder::NestBuilder;

  void build(UnitRange range);

private:
  /// One unit for each batch, each tile of rows, or each block of columns.
  void buildTiles(UnitRange range);
  void buildRows(const Index &batch, UnitRange range);
  void buildColumns(UnitRange range);
  void buildPanel(const Index &batch, const Index &column, int64_t columns,
                  UnitRange range);
  void buildTile(const Index &batch, const Index &row, int64_t rows,
                 const Index &column, int64_t columns, mlir::Value packed);
  /// With lanes over the contraction.
  void buildInnerProducts(UnitRange range);
  /// Copies a panel of columns of the second factor to the stack, as vectors of
  /// columns for each k. Null if it is too large.
  mlir::Value packPanel(const Index &batch, const Index &column,
                        int64_t columns);
  mlir::Value getScratch(int64_t elements);
  IndexList getIndex(const Index &batch, const Index &row, const Index &column);
  /// stride-weighted sum of indices; lanes are ignored.
  mlir::Value getLinear(llvm::ArrayRef<std::pair<Index, int64_t>> terms);

  /// Room for packed columns on the stack; null until it is needed.
  mlir::Value scratch;
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_GEMMBUILDER_H
