//===- Nesting.h - Blocks of functions with loops ---------------*- C++ -*-===//
//
// A function is one block of ops. Some of these are loops (shardc.accumulate),
// whose body is a block of its own that uses values of the outer one. These
// queries relate the two levels. Kernels are isolated and count as plain ops.
// Reads the IR only; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_NESTING_H
#define SHARDC_ANALYSIS_NESTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// The function's block and then those of its loops, in program order.
llvm::SmallVector<mlir::Block *> getBlocks(mlir::func::FuncOp function);

/// The values of the block of `op` that `op`, or an op inside it, uses: one
/// entry per use.
llvm::SmallVector<mlir::Value> getUsedValues(mlir::Operation *op);

/// The op in the block of `value` that is `user` or contains it.
mlir::Operation *getUserInBlock(mlir::Value value, mlir::Operation *user);

/// The op that computes `value`; of a loop's result, the op inside the loop
/// that computes the summand. Null for arguments.
mlir::Operation *getComputingOp(mlir::Value value);

/// How many times a step runs `op`: the runs of the loop it is in, or 1.
int64_t getNumRuns(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_ANALYSIS_NESTING_H
