//===- Builders.h - Short spellings for common core ops ---------*- C++ -*-===//
//
// Free functions that build one or two core ops. They hold no state.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_BUILDERS_H
#define SHARDC_DIALECT_SHARDC_IR_BUILDERS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/Builders.h"

namespace shardc {

/// The attribute of a `type` tensor whose elements all are `value`: rounded to
/// nearest even for floats, truncated for integers, `value != 0` for i1.
mlir::DenseElementsAttr getSplat(mlir::RankedTensorType type, double value);

/// A `shardc.constant` whose elements all are `value` (see `getSplat`).
mlir::Value constantSplat(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::RankedTensorType type, double value);

/// The value of every element if `value` is a splat constant (through
/// broadcasts of one), else nothing.
std::optional<double> matchSplat(mlir::Value value);

/// `scalar` (rank 0) repeated to `type`, whose element type is the same; the
/// scalar itself if `type` has rank 0.
mlir::Value broadcastScalar(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value scalar, mlir::RankedTensorType type);

/// `operand` repeated to `type`: its dimension i becomes dimension `dims[i]`.
/// Returns `operand` where nothing would be new.
mlir::Value broadcastTo(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value operand, mlir::RankedTensorType type,
                        llvm::ArrayRef<int64_t> dims);

/// `operand` with elements of type `element`; itself if it has them.
mlir::Value convertTo(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value operand, mlir::Type element);

/// Reduction of `operand` over `dims` (ascending); `operand` itself if there
/// are none.
mlir::Value reduce(mlir::OpBuilder &builder, mlir::Location loc,
                   ReductionKind kind, mlir::Value operand,
                   llvm::ArrayRef<int64_t> dims);

/// Reduction of `operand` over all its dimensions.
mlir::Value reduceAll(mlir::OpBuilder &builder, mlir::Location loc,
                      ReductionKind kind, mlir::Value operand);

/// A dot product without batching dimensions, its result type inferred.
mlir::Value dot(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value lhs,
                mlir::Value rhs, llvm::ArrayRef<int64_t> lhsContracting,
                llvm::ArrayRef<int64_t> rhsContracting);

/// A comparison, its result type inferred.
mlir::Value compare(mlir::OpBuilder &builder, mlir::Location loc,
                    CompareKind kind, mlir::Value lhs, mlir::Value rhs);

/// The terms of cross-entropy with integer labels, for logits `[rows,
/// classes]`. With z the logits and m their maximum by row:
struct CrossEntropyTerms {
  /// `[rows]`: log Σ e^(z - m).
  mlir::Value normaliser;
  /// `[rows, classes]`: z - m at the label, 0 elsewhere.
  mlir::Value picked;
  /// `[rows]`: m, through which no gradient flows.
  mlir::Value highest;
};

/// Builds the terms of which the loss of a row is normaliser - Σ picked: a
/// difference without cancellation, both parts being losses of that row. Sums
/// of `picked` straight to a scalar need only a scalar reduction where classes
/// are sharded.
CrossEntropyTerms buildCrossEntropyTerms(mlir::OpBuilder &builder,
                                         mlir::Location loc, mlir::Value logits,
                                         mlir::Value labels);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_BUILDERS_H
