//===- ReverseMode.h - Gradients of a block's result ------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_REVERSEMODE_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_REVERSEMODE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Builds the gradients of the scalar `loss` with respect to `parameters`, at
/// the insertion point of `builder`: the end of the block that computes `loss`.
/// Returns them in the order of `parameters`, null for a parameter that the
/// loss does not depend on. The gradients of the uses of a value are added
/// before they flow further. Fails with an error at an op that has no gradient
/// and through which the loss depends on a parameter.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
buildGradients(mlir::OpBuilder &builder, mlir::Value loss,
               mlir::ValueRange parameters);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_REVERSEMODE_H
