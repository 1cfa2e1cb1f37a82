//===- GemmBuilder.h - GEMMs on register tiles ------------------*- C++ -*-===//
//
// A tile of rows × two vectors of columns is accumulated in registers over the
// whole contraction and then goes through the epilogue. The order of additions
// depends on shapes alone. Where the columns of the second factor do not lie
// side by side, or its rows meet in few sets of a cache, those of a panel are
// first copied to the stack.
//
// Of two to six columns lanes run over pairs of columns, of four rows:
//
//   lanes       0    1    2    3    4    5    6    7
//   elements    00   01   20   21   10   11   30   31     row, column
//               02   03   22   23   12   13   32   33
//
// One shuffle of four rows' terms makes the factor of both vectors.
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
  /// Lanes of a panel of columns: one vector or two.
  int64_t getPanelWidth() const {
    return getNumColumns() > numLanes ? 2 * numLanes : numLanes;
  }
  /// Those of all devices whose columns lie side by side.
  int64_t getNumColumns() const {
    return plan.deviceLanes > 0 ? plan.devices * plan.deviceLanes : plan.gemm.n;
  }
  /// One unit for each batch, each group of rows, or each block of columns.
  void buildTiles(UnitRange range);
  void buildRows(const Index &batch, UnitRange range);
  void buildColumns(UnitRange range);
  void buildPanel(const Index &batch, const Index &column, int64_t columns,
                  UnitRange range);
  void buildWholeTiles(const Index &batch, const Index &column, int64_t columns,
                       UnitRange range, mlir::Value packed);
  /// The rows of units that are no tiles: tiles, behind the last whole one of
  /// the range half a tile, down to `least` rows, then single rows.
  void
  buildRowSteps(UnitRange range, int64_t least,
                llvm::function_ref<void(const Index &row, int64_t rows)> body);
  /// The columns of several devices side by side.
  void buildSideBySide(UnitRange range);
  /// The rows behind whole tiles, if the range has them, whose elements have
  /// chains of their own.
  void buildLastRows(
      UnitRange range,
      llvm::function_ref<void(const Index &row, int64_t chains)> body);
  /// Each element adds up in `chains` chains.
  void buildTile(const Index &batch, const Index &row, int64_t rows,
                 int64_t chains, const Index &column, int64_t columns,
                 mlir::Value packed);
  /// The sums of a tile, a row's vectors behind one another. The columns are in
  /// `panel`, if not null, or in the device's memory.
  llvm::SmallVector<mlir::Value>
  accumulateTile(const Index &batch, const Index &row, int64_t rows,
                 int64_t chains, const Index &column, int64_t columns,
                 mlir::Value panel);
  /// A tile of columns of several devices, from that of number `column` on.
  void buildSharedTile(const Index &row, int64_t rows, int64_t chains,
                       int64_t column, int64_t columns, mlir::Value packed);
  /// A tile of `rows`, a multiple of four, with lanes over pairs of columns.
  void buildPairs(const Index &batch, const Index &row, int64_t rows,
                  mlir::Value packed);
  /// Sums of pairs, those of a group of rows behind one another, as vectors of
  /// the result in row-major order, of which the last may have lanes beyond it.
  llvm::SmallVector<mlir::Value> joinPairs(llvm::ArrayRef<mlir::Value> sums,
                                           int64_t rows);
  /// With lanes over the contraction.
  void buildInnerProducts(UnitRange range);
  /// The values that `compute` builds for each device, added up in the order of
  /// a tree: that of a sum over devices, runtime/src/base/ReductionTree.h.
  using ComputeOnDevice =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(int64_t device)>;
  llvm::SmallVector<mlir::Value> addUpDevices(ComputeOnDevice compute);
  llvm::SmallVector<mlir::Value> addUpDevices(ComputeOnDevice compute,
                                              int64_t first, int64_t devices);
  /// Copies a panel of columns of each device's second factor to the stack, as
  /// vectors of columns for each k. Null if they are too large.
  mlir::Value packPanels(const Index &batch, const Index &column,
                         int64_t columns);
  /// Copies columns of a device's second factor into a panel, in vectors of the
  /// current lanes.
  void packInto(mlir::Value packed, const Index &batch, const Index &column,
                int64_t columns);
  /// That of a device, null if nothing is packed.
  mlir::Value getPanel(mlir::Value panels, int64_t device);
  mlir::Value getScratch(int64_t elements);
  /// The type of elements of a panel: a bool takes a byte.
  mlir::Type getPackedType() const;
  /// So many elements of a panel from `place` on, as they are computed with.
  mlir::Value loadPacked(mlir::Value packed, const Index &place, int64_t lanes);
  void storePacked(mlir::Value packed, const Index &place, mlir::Value lanes);
  IndexList getIndex(const Index &batch, const Index &row, const Index &column);
  /// stride-weighted sum of indices; lanes are ignored.
  mlir::Value getLinear(llvm::ArrayRef<std::pair<Index, int64_t>> terms);

  /// Room for packed columns on the stack; null until it is needed.
  mlir::Value scratch;
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_GEMMBUILDER_H
