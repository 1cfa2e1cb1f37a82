//===- ThreadLoops.h - The threads of a block as loops ----------*- C++ -*-===//
//
// Loop fission at synchronisation points, as in MCUDA (Stratton et al., LCPC
// 2008). Splits the body of a gpu.func at barriers and shuffles and turns each
// piece into a loop over the threads. Values that outlive their loop are kept
// in arrays with an element per thread. Control flow around a synchronisation
// point is the same for all threads, as the dialect demands.
//
// Not thread-safe; one object per function.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_THREADLOOPS_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_THREADLOOPS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace shardc {

/// Builds one block's work, once, into a function under construction.
class ThreadLoops {
public:
  /// `entry` is the first block of the function that `builder` builds; arrays
  /// are allocated there.
  ThreadLoops(mlir::OpBuilder &builder, mlir::Block *entry, int64_t threads);

  /// Sets the value in the new function for a value that is the same in all
  /// threads.
  void map(mlir::Value value, mlir::Value replacement) {
    uniform.map(value, replacement);
  }
  /// Builds the ops of `block` at the builder's place; `blockId` is the index
  /// of the block in the grid, i64. Emits an error where threads would
  /// synchronise in control flow that is not supported.
  mlir::LogicalResult build(mlir::Block &block, mlir::Value blockId);

private:
  mlir::OpBuilder &builder;
  mlir::Block *entry;
  int64_t threads;
  /// Values that are the same in all threads, and the arrays of those that are
  /// not.
  mlir::IRMapping uniform;
  llvm::DenseMap<mlir::Value, mlir::Value> arrays;

  void buildSegment(llvm::ArrayRef<mlir::Operation *> ops);
  mlir::LogicalResult buildMeeting(mlir::Operation *op, mlir::Value blockId);
  void buildShuffle(mlir::gpu::ShuffleOp shuffle);
  mlir::LogicalResult buildUniformRegion(mlir::Operation *op,
                                         mlir::Value blockId);
  /// A loop over the threads.
  void forEachThread(mlir::Location loc,
                     llvm::function_ref<void(mlir::Value thread)> body);
  mlir::Value getConstant(mlir::Location loc, int64_t value);
  mlir::Value getElement(mlir::Value value, mlir::Value thread);
  mlir::Value getArrayAddress(mlir::Value value, mlir::Value thread);
  mlir::Value getUniform(mlir::Value value);
};

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_THREADLOOPS_H
