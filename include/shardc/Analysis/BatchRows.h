//===- BatchRows.h - What a step does row by row ----------------*- C++ -*-===//
//
// Which ops of a train step work on rows of the batch, each on its own, and
// which of their results are sums over the rows. Found by the sharding rules:
// rows are a factor that starts at the leading dimensions of inputs and labels
// and spreads, forwards and backwards, to all dimensions that an op ties to
// them. A microbatch is to the batch in time what a shard is in space, so what
// may be cut is what may be sharded: a contracted row factor makes a partial
// sum. Snapshot of the function; thread-safe to read.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_BATCHROWS_H
#define SHARDC_ANALYSIS_BATCHROWS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

class BatchRows {
public:
  /// Analyses `step`, over the tensor core. Fails with an error at the op if
  /// the step cannot be cut into `count` microbatches: rows that depend on each
  /// other or on their place, that do not divide, or that need a sum over all
  /// rows.
  static mlir::FailureOr<BatchRows> find(mlir::func::FuncOp step,
                                         int64_t count);

  /// The dimension of `value` that is rows of the batch, or -1.
  int64_t getDim(mlir::Value value) const;

  /// The ops that work on rows, in program order.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }

  /// Whether `value` is a sum over all rows that one of those ops makes.
  bool isSum(mlir::Value value) const { return sums.contains(value); }

  /// Whether `op` needs such a sum, directly or not.
  bool needsSum(mlir::Operation *op) const { return later.contains(op); }

private:
  mlir::LogicalResult mark(mlir::Value value, int64_t dim, mlir::Location loc);
  mlir::LogicalResult spread(mlir::Operation *op);
  mlir::LogicalResult classify(mlir::func::FuncOp step, int64_t count);

  llvm::DenseMap<mlir::Value, int64_t> dims;
  /// The factor of its rule that is rows of the batch.
  llvm::DenseMap<mlir::Operation *, int> factors;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseSet<mlir::Value> sums;
  llvm::DenseSet<mlir::Operation *> later;
  int64_t batchSize = 1;
  bool changed = false;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_BATCHROWS_H
