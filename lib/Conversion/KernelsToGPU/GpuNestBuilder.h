//===- GpuNestBuilder.h - One nest on a grid --------------------*- C++ -*-===//
//
// Builds the work of one thread in each kind of nest, around the values of
// NestEmitter. Neighbouring threads load and store neighbouring elements.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUNESTBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUNESTBUILDER_H

#include "GpuBlock.h"
#include "GpuNestPlan.h"

namespace shardc {

/// Builds the nest for block `nestBlock`, an i64, of its `plan.blocks`.
class GpuNestBuilder {
public:
  GpuNestBuilder(NestEmitter &emitter, GpuBlock &block, const GpuNestPlan &plan,
                 const ResultBuffers &buffers)
      : emitter(emitter), loops(emitter.loops), builder(loops.builder),
        loc(loops.loc), math(loops.math), block(block), plan(plan),
        nest(plan.nest), buffers(buffers) {}

  void build(mlir::Value nestBlock);

private:
  NestEmitter &emitter;
  LoopBuilder &loops;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;
  GpuBlock &block;
  const GpuNestPlan &plan;
  const KernelNest &nest;
  const ResultBuffers &buffers;

  using Values = llvm::SmallVector<mlir::Value>;

  void buildMap(mlir::Value nestBlock);
  void buildGemm(mlir::Value nestBlock);
  void buildRows(mlir::Value nestBlock);
  void buildRow(llvm::ArrayRef<Index> outer, const Index &member,
                mlir::Value isActive);
  /// One pass over a row: the reductions' values in this thread alone.
  Values passRow(const NestPass &pass, llvm::ArrayRef<Index> outer,
                 const Index &member, mlir::Value isActive);
  /// A vector of a row that thread `member` of its group keeps.
  struct RowPart {
    IndexList place;
    /// Null: always.
    mlir::Value isInRow;
  };
  llvm::SmallVector<RowPart> getParts(const Index &member);
  /// `passRow` over the parts that this thread keeps, in the same order.
  Values passParts(const NestPass &pass, llvm::ArrayRef<Index> outer,
                   llvm::ArrayRef<RowPart> parts, mlir::Value isActive);
  /// Vectors combined to scalars; scalars as they are.
  Values combineLanes(llvm::ArrayRef<ReduceOp> reductions, Values values);
  void buildColumns(mlir::Value nestBlock);
  void buildColumnBlock(const Index &unit);
  /// One pass over the rows `y`, `y` + `rowsAtOnce`, …: the reductions' values
  /// in this thread alone.
  Values passColumns(const NestPass &pass, llvm::ArrayRef<Index> outer,
                     mlir::Value y, int64_t rowsAtOnce, mlir::Value isActive);
  /// `value` of this thread combined with that of all `rows` threads of its
  /// columns; `within` is the first of them in the block, `y` this thread's
  /// row.
  mlir::Value combineRows(ReductionKind kind, mlir::Value value,
                          mlir::Value within, mlir::Value y, int64_t rows);

  /// Runs `body` at places `first`, `first` + `stride`, … below `end`; carries
  /// its values. There is no loop if each place in [0, stride) has one turn.
  Values stride(mlir::Value first, int64_t end, int64_t stride,
                mlir::ValueRange init, LoopBuilder::LoopBody body);
  /// Builds `body` for when `condition` holds; without one, always.
  void buildIf(mlir::Value condition, llvm::function_ref<void()> body);
  mlir::Value isBelow(mlir::Value value, int64_t bound);
  mlir::Value both(mlir::Value lhs, mlir::Value rhs);

  /// The place of vector `step` in row-major order over `sizes`.
  IndexList getPlace(const Index &step, llvm::ArrayRef<int64_t> sizes);
  /// The neutral elements of reductions, in all lanes of vectors if asked.
  Values getIdentities(llvm::ArrayRef<ReduceOp> reductions, bool hasLanes);
  /// Adds the reduced values at `index` to `accs`.
  void accumulate(llvm::ArrayRef<ReduceOp> reductions,
                  llvm::ArrayRef<Index> index,
                  llvm::MutableArrayRef<mlir::Value> accs);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUNESTBUILDER_H
