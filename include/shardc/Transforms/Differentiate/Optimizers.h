//===- Optimizers.h - Updates of parameters and states ----------*- C++ -*-===//
//
// SGD, momentum, Adam (arXiv 1412.6980) and AdamW (arXiv 1711.05101) as optax
// defines them, and clipping by the global norm.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_DIFFERENTIATE_OPTIMIZERS_H
#define SHARDC_TRANSFORMS_DIFFERENTIATE_OPTIMIZERS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// The suffixes of the names of the states that `kind` keeps for each
/// parameter, in the order in which `Optimizer::update` takes the states.
llvm::ArrayRef<llvm::StringRef> getStateSuffixes(OptimizerKind kind);

/// Whether optimizer or schedule of `training` read the number of steps done.
bool needsStep(TrainingAttr training);

/// Replaces `gradients`, which are not empty, by gradients scaled such that
/// their global norm is at most `limit`, as optax.clip_by_global_norm does.
void clipByGlobalNorm(mlir::OpBuilder &builder, mlir::Location loc,
                      double limit,
                      llvm::MutableArrayRef<mlir::Value> gradients);

/// Builds the updates of parameters. The constructor builds the scalars that
/// all updates share: learning rate and bias corrections.
class Optimizer {
public:
  /// `step` may be null if `training` needs none.
  Optimizer(mlir::OpBuilder &builder, mlir::Location loc, TrainingAttr training,
            mlir::Value step);

  /// Returns the new parameter and replaces `states` by the new ones.
  mlir::Value update(mlir::Location loc, mlir::Value parameter,
                     mlir::Value gradient,
                     llvm::MutableArrayRef<mlir::Value> states);

private:
  mlir::OpBuilder &builder;
  OptimizerAttr optimizer;
  /// Scalars (tensor<f32>): learning rate; 1/(1 - b^t) for b1 and b2.
  mlir::Value learningRate, firstCorrection, secondCorrection;
};

} // namespace shardc

#endif // SHARDC_TRANSFORMS_DIFFERENTIATE_OPTIMIZERS_H
