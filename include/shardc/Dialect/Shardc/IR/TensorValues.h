//===- TensorValues.h - Types of tensors ------------------------*- C++ -*-===//
//
// Values of the dialect are ranked tensors of static shape, which the verifiers
// guarantee.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_TENSORVALUES_H
#define SHARDC_DIALECT_SHARDC_IR_TENSORVALUES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace shardc {

/// The most that a dimension of a tensor may have: plans hold sizes of GEMMs
/// in 31 bits.
constexpr int64_t maxDimension = (int64_t(1) << 31) - 1;

inline mlir::RankedTensorType getTensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

inline llvm::ArrayRef<int64_t> getTensorShape(mlir::Value value) {
  return getTensorType(value).getShape();
}

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_TENSORVALUES_H
