//===- ReductionBuilder.h - Nests of reductions -----------------*- C++ -*-===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_REDUCTIONBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_REDUCTIONBUILDER_H

#include "NestBuilder.h"

namespace shardc {

/// Builds a nest with reductions over its trailing dimensions (rows) or its
/// leading ones (columns).
class ReductionBuilder : public NestBuilder {
public:
  using NestBuilder::NestBuilder;

  void build(UnitRange range);

private:
  void buildRows(UnitRange range);
  /// The row at `outer`, in as few passes as its reductions allow.
  void buildRow(llvm::ArrayRef<Index> outer);
  void buildColumns(UnitRange range);
  /// The vectors of columns `columns` along dimension `dim` of `outer`.
  void buildColumnBlock(llvm::ArrayRef<Index> outer, int64_t dim,
                        llvm::ArrayRef<Index> columns);
  /// The sums of a pass over so many rows: for each of `places`, those of its
  /// reductions.
  llvm::SmallVector<mlir::Value> addRows(int64_t rows, const NestPass &pass,
                                         llvm::ArrayRef<IndexList> places);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_REDUCTIONBUILDER_H
