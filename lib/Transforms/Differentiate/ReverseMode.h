//===- ReverseMode.h - Gradients of a block's result ------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_REVERSEMODE_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_REVERSEMODE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Builds at the builder's insertion point, which is at the end of the block
/// that computes `loss`, the gradients of the scalar `loss` with respect to
/// `parameters`, in their order; null where the loss does not depend on one. A
/// value used several times sums its gradients at once. Fails, with an error at
/// the op, where the loss depends on a parameter through an op that has no
/// gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildGradients(mlir::OpBuilder &builder, mlir::Value loss,
               mlir::ValueRange parameters);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_REVERSEMODE_H
