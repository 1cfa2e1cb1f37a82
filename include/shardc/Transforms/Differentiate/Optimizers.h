//===- Optimizers.h - Updates of parameters and states ----------*- C++ -*-===//
//
// SGD, momentum, Adam and AdamW as optax defines them, and clipping by the
// global norm.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_DIFFERENTIATE_OPTIMIZERS_H
#define SHARDC_TRANSFORMS_DIFFERENTIATE_OPTIMIZERS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Suffixes of the names of the states that `kind` keeps for each parameter, in
/// the order in which `Optimizer` takes them.
llvm::ArrayRef<llvm::StringRef> getStateSuffixes(OptimizerKind kind);

/// Whether `training` needs the number of steps done.
bool needsStep(TrainingAttr training);

/// Scales `gradients` (not empty) in place such that their global norm is at
/// most `limit`: optax.clip_by_global_norm.
void clipByGlobalNorm(mlir::OpBuilder &builder, mlir::Location loc,
                      double limit,
                      llvm::MutableArrayRef<mlir::Value> gradients);

/// Builds the update of one parameter after the other. What all share (learning
/// rate, bias corrections) is built once, by the constructor.
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
