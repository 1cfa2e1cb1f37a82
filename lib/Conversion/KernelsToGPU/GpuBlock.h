//===- GpuBlock.h - The threads of a block ----------------------*- C++ -*-===//
//
// Thread and block indices, and values combined over groups of threads. All
// orders are fixed by the number of threads: results have the same bits on
// every run. Not thread-safe, as the loop builder that it borrows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUBLOCK_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUBLOCK_H

#include "shardc/Conversion/KernelEmitter/LoopBuilder.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace shardc {

/// The blocks of one kernel; `threads` is a multiple of the size of a warp.
class GpuBlock {
public:
  /// At the start of `function`, whose code `loops` builds.
  GpuBlock(LoopBuilder &loops, mlir::gpu::GPUFuncOp function, int64_t threads);

  const int64_t threads;
  /// The index of this thread in its block and of the block in the grid, i64.
  mlir::Value getThread() const { return thread; }
  mlir::Value getBlock() const { return block; }

  /// `value`, a scalar, combined over each group of `size` neighbouring
  /// threads, in all of them: a power of two up to a warp, or the whole block.
  /// All threads of the block come here together.
  mlir::Value combine(ReductionKind kind, mlir::Value value, int64_t size);

  /// Waits until all threads of the block are here; then their writes are
  /// visible.
  void synchronize();

  /// Address of element `linear` of an array of `count` elements that the block
  /// shares. Arrays overlap: a use ends with `synchronize`.
  mlir::Value getShared(mlir::Type element, int64_t count, mlir::Value linear);

private:
  LoopBuilder &loops;
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::gpu::GPUFuncOp function;
  mlir::Value thread, block;
  mlir::LLVM::GlobalOp shared;
  mlir::Value sharedAddress;

  mlir::Value buildId(mlir::Value index);
  mlir::Value exchange(mlir::Value value, int64_t distance);
  mlir::Value combineNeighbours(ReductionKind kind, mlir::Value value,
                                int64_t size);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUBLOCK_H
