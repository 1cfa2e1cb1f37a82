//===- InputGradients.h - The backward pass in two parts --------*- C++ -*-===//

#ifndef SHARDC_TRANSFORMS_PIPELINE_INPUTGRADIENTS_H
#define SHARDC_TRANSFORMS_PIPELINE_INPUTGRADIENTS_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace shardc {

/// The ops of the backward pass in `block` whose results another stage needs,
/// directly or through ops of their own stage. All others make gradients of
/// parameters alone.
llvm::DenseSet<mlir::Operation *> findInputGradients(mlir::Block &block);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_PIPELINE_INPUTGRADIENTS_H
