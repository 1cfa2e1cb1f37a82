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

inline mlir::RankedTensorType getTensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

inline llvm::ArrayRef<int64_t> getTensorShape(mlir::Value value) {
  return getTensorType(value).getShape();
}

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_TENSORVALUES_H
