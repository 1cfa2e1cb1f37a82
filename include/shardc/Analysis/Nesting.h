//===- Nesting.h - Programs whose ops have bodies ---------------*- C++ -*-===//
//
// A function is one block of ops, some of which are loops (shardc.accumulate)
// with a block of their own that uses values of the outer one. What order and
// dependences among the ops of one block mean then. Kernels are isolated and
// count as plain ops. Reads the IR only; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_NESTING_H
#define SHARDC_ANALYSIS_NESTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// The function's block and then those of its loops, in program order.
llvm::SmallVector<mlir::Block *> getBlocks(mlir::func::FuncOp function);

/// The values defined in the block of `op` that `op`, or an op inside it, uses:
/// one entry per use.
llvm::SmallVector<mlir::Value> getUsedValues(mlir::Operation *op);

/// The op of the block of `value` that is `user` or has it inside.
mlir::Operation *getUserInBlock(mlir::Value value, mlir::Operation *user);

/// The op that computes `value`; of a loop's result the op inside that computes
/// what is summed. Null for arguments.
mlir::Operation *getComputingOp(mlir::Value value);

/// How many times a step runs `op`: the runs of the loop it is in, or 1.
int64_t getNumRuns(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_ANALYSIS_NESTING_H
