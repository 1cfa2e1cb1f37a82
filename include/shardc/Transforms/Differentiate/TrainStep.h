//===- TrainStep.h - The train step -----------------------------*- C++ -*-===//

#ifndef SHARDC_TRANSFORMS_DIFFERENTIATE_TRAINSTEP_H
#define SHARDC_TRANSFORMS_DIFFERENTIATE_TRAINSTEP_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Builds `@train_step(params, states, inputs and labels) -> (new params, new
/// states, loss)` before the function `loss`, by reverse mode and the optimizer
/// of `training`. States inherit the sharding of their parameter unless it has
/// `shardc.state_sharding`. `shardc.grad_sharding` becomes a constraint on the
/// gradient. Fails with an error at every parameter that has no gradient.
mlir::FailureOr<mlir::func::FuncOp> buildTrainStep(mlir::func::FuncOp loss,
                                                   TrainingAttr training);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_DIFFERENTIATE_TRAINSTEP_H
