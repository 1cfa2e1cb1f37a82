//===- NestBuilder.h - Loops of one nest ------------------------*- C++ -*-===//
//
// Builds the loops of a nest around the values of NestEmitter. A nest has a
// number of independent units of work, in order; kernels run blocks of units,
// and no result depends on how the units are split.
//
// Each kind of nest has a builder of its own: MapBuilder, ReductionBuilder,
// GemmBuilder. NestBuilder has the loops that they share.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTBUILDER_H
#define SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTBUILDER_H

#include "NestPlan.h"

namespace shardc {

/// Units [low, high) to run; without values, all of them.
struct UnitRange {
  mlir::Value low, high;
};

/// Builds the loops of the nest for a range of units that starts at a multiple
/// of `unitsPerIteration` and ends at one or at the last unit. `buffers` are
/// those of each device whose results it computes.
void buildNest(NestEmitter &emitter, const NestPlan &plan,
               llvm::ArrayRef<ResultBuffers> buffers, UnitRange range);

/// The loops over units, vectors and chains of a nest. Borrows its arguments.
class NestBuilder {
public:
  NestBuilder(NestEmitter &emitter, const NestPlan &plan,
              llvm::ArrayRef<ResultBuffers> buffers)
      : emitter(emitter), loops(emitter.loops), memory(emitter.memory),
        builder(loops.builder), loc(loops.loc), math(loops.math), plan(plan),
        nest(plan.nest), buffers(buffers) {}

protected:
  NestEmitter &emitter;
  LoopBuilder &loops;
  BufferAccess &memory;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;
  const NestPlan &plan;
  const int64_t numLanes = plan.numLanes;
  const KernelNest &nest;
  const llvm::ArrayRef<ResultBuffers> buffers;

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
  /// the remainder goes to the first. All start from `init`; returns them
  /// combined by `combine(position, lhs, rhs)`.
  llvm::SmallVector<mlir::Value>
  buildChains(int64_t count, int64_t chains, mlir::ValueRange init,
              VectorBody body,
              llvm::function_ref<mlir::Value(size_t, mlir::Value, mlir::Value)>
                  combine);

  /// A loop over the units of the range.
  void forEachUnit(UnitRange range, llvm::function_ref<void(Index)> body);
  /// Builds `body` for the first column and the number of columns of the block
  /// at `place`, out of `columns`.
  void buildBlock(const Index &place, int64_t columns,
                  llvm::function_ref<void(const Index &, int64_t)> body);

  void storeFull(llvm::ArrayRef<Index> index);
  void storeOuter(llvm::ArrayRef<Index> index);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOCPU_NESTBUILDER_H
