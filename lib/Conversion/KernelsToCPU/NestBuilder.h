//===- NestBuilder.h - Loops of one nest ------------------------*- C++ -*-===//
//
// Builds the loops of each kind of nest around the emitter. A nest has a number
// of independent units of work, in order; kernels run blocks of units, and no
// result depends on how the units are split.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTBUILDER_H

#include "shardc/Conversion/KernelEmitter/NestShape.h"

#include "shardc/Analysis/GemmView.h"

namespace shardc {

/// Lanes of a vector that every CPU of the plan has: eight floats fill a
/// register of AVX2. What a nest adds up and how it is divided follows from
/// them on every CPU, so that all compute the same bits.
constexpr int64_t baseLanes = 8;

/// Columns that are one unit: of a reduction over rows, and of a product whose
/// operands are swapped.
constexpr int64_t columnBlock = 4 * baseLanes;

/// A nest with its division into work.
struct NestPlan {
  KernelNest nest;
  /// Elements are at linear places of all tensors alike.
  bool isFlat = false;
  /// Some value cannot be computed on lanes.
  bool isScalar = false;
  /// The view of a Gemm; its operands swapped if `isSwapped`, so that the lanes
  /// run over the rows of the result.
  GemmView gemm;
  bool isSwapped = false;
  /// Lanes run over the contraction.
  bool isInnerProduct = false;
  /// Lanes of its vectors.
  int64_t numLanes = baseLanes;
  /// Rows of a register tile (Gemm).
  int64_t tileRows = 1;
  /// Independent units, and how many of them make one iteration of the kernel.
  int64_t units = 1;
  int64_t unitsPerIteration = 1;

  int64_t getExtent() const {
    return (units + unitsPerIteration - 1) / unitsPerIteration;
  }
};

/// Plans a nest: how it is vectorised, with at most so many lanes, and divided.
NestPlan planNest(KernelNest nest, int64_t mostLanes);

/// Units [low, high) to run; without values, all of them.
struct UnitRange {
  mlir::Value low, high;
};

/// Builds the loops of the nest for a range of units that starts at a multiple
/// of `unitsPerIteration` and ends at one or at the last unit.
class NestBuilder {
public:
  NestBuilder(NestEmitter &emitter, const NestPlan &plan,
              const ResultBuffers &buffers)
      : emitter(emitter), builder(emitter.builder), loc(emitter.loc),
        math(emitter.math), plan(plan), nest(plan.nest), buffers(buffers) {}

  void build(UnitRange range);

private:
  NestEmitter &emitter;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;
  const NestPlan &plan;
  const int64_t numLanes = plan.numLanes;
  const KernelNest &nest;
  const ResultBuffers &buffers;

  /// One step: its index, along the vectorised dimension with lanes, and its
  /// own accumulators.
  using VectorBody =
      llvm::function_ref<void(Index, llvm::MutableArrayRef<mlir::Value>)>;
  /// Runs `body` over [0, size) in vectors, `unroll` of them at a time with
  /// accumulators of their own, started from `init`; returns the accumulators
  /// combined by `combine(position, lhs, rhs)`.
  llvm::SmallVector<mlir::Value>
  buildVectors(int64_t size, int64_t unroll, mlir::ValueRange init,
               VectorBody body,
               llvm::function_ref<mlir::Value(size_t, mlir::Value, mlir::Value)>
                   combine);
  void buildVectors(int64_t size, int64_t unroll, VectorBody body);

  /// Runs `body` over [0, count) with one of `chains` sets of accumulators
  /// after the other, so that a set's next addition need not wait for its last;
  /// what is left over goes to the first. All start from `init`; returns them
  /// combined by `combine(position, lhs, rhs)`.
  llvm::SmallVector<mlir::Value>
  buildChains(int64_t count, int64_t chains, mlir::ValueRange init,
              VectorBody body,
              llvm::function_ref<mlir::Value(size_t, mlir::Value, mlir::Value)>
                  combine);

  /// A loop over the units of the range.
  void forEachUnit(UnitRange range, llvm::function_ref<void(Index)> body);

  void buildFlatMap(UnitRange range);
  void buildMap(UnitRange range);
  void buildScalarMap(UnitRange range);
  void buildRows(UnitRange range);
  void buildRow(llvm::ArrayRef<Index> outer);
  void buildColumns(UnitRange range);
  void buildColumnBlock(llvm::ArrayRef<Index> outer, int64_t dim,
                        llvm::ArrayRef<Index> columns);
  llvm::SmallVector<mlir::Value> addRows(int64_t rows, const NestPass &pass,
                                         llvm::ArrayRef<IndexList> places);
  /// Builds `body` for the first column and the number of columns of the block
  /// at `place`, out of `columns`.
  void buildBlock(const Index &place, int64_t columns,
                  llvm::function_ref<void(const Index &, int64_t)> body);
  void buildGemm(UnitRange range);
  void buildGemmRows(const Index &batch, UnitRange range);
  void buildGemmColumns(UnitRange range);
  void buildGemmPanel(const Index &batch, const Index &column, int64_t columns,
                      UnitRange range);
  void buildGemmTile(const Index &batch, const Index &row, int64_t rows,
                     const Index &column, int64_t columns, mlir::Value packed);
  void buildInnerProducts(UnitRange range);
  mlir::Value packPanel(const Index &batch, const Index &column,
                        int64_t columns);
  mlir::Value getScratch(int64_t elements);
  IndexList getGemmIndex(const Index &batch, const Index &row,
                         const Index &column);
  /// stride-weighted sum of indices; lanes are ignored.
  mlir::Value getLinear(llvm::ArrayRef<std::pair<Index, int64_t>> terms);

  void storeFull(llvm::ArrayRef<Index> index);
  void storeOuter(llvm::ArrayRef<Index> index);
  mlir::Value scratch;
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTBUILDER_H
