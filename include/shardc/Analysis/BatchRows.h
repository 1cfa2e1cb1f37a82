//===- BatchRows.h - The ops that work on rows of the batch -----*- C++ -*-===//
//
// Finds the ops of a train step that work on each row of the batch alone, and
// those of their results that are sums over the rows. Rows are a factor of the
// sharding rules: it starts at the leading dimensions of inputs and labels and
// spreads, forward and backward, to all dimensions that an op ties to them. A
// microbatch is to the batch in time what a shard is in space, so an op may be
// cut iff the row factor may be sharded, and a contracted row factor makes a
// partial sum. Snapshot of the function; thread-safe to read.
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
  /// the step cannot be cut into microbatches: rows depend on each other or on
  /// their position, or need a sum over all rows.
  static mlir::FailureOr<BatchRows> find(mlir::func::FuncOp step);

  /// The same for the `body` of a loop over microbatches, whose arguments
  /// `data` are the rows of one, the batch. Errors are those of a body that
  /// depends on the rows that make a microbatch.
  static mlir::FailureOr<BatchRows>
  find(mlir::Block &body, llvm::ArrayRef<mlir::BlockArgument> data);

  /// The rows of the batch. Every dimension that is rows of the batch has this
  /// size, or a multiple: so many consecutive indices for each row.
  int64_t getBatchSize() const { return batchSize; }

  /// The dimension of `value` that is rows of the batch, or -1.
  int64_t getDim(mlir::Value value) const;

  /// The ops that work on rows, in program order.
  llvm::ArrayRef<mlir::Operation *> getOps() const { return ops; }

  /// Whether `value` is a sum over all rows that one of those ops makes.
  bool isSum(mlir::Value value) const { return sums.contains(value); }

  /// Whether `op` depends on such a sum.
  bool needsSum(mlir::Operation *op) const { return later.contains(op); }

private:
  mlir::LogicalResult mark(mlir::Value value, int64_t dim, mlir::Location loc);
  mlir::LogicalResult spread(mlir::Operation *op);
  mlir::LogicalResult analyse(mlir::Block &block);
  mlir::LogicalResult classify(mlir::Block &block);

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
