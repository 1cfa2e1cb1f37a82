//===- Evaluation.h - The evaluation program --------------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_EVALUATION_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_EVALUATION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Builds `@evaluate(params, inputs and labels) -> results` before the function
/// `loss`, with the roles and shardings of its arguments. Composites of `loss`
/// must not be decomposed yet. `shardc.result` names the results:
///   "loss", a scalar;
///   "per_example_loss" `[rows]`, if the loss is the result of an mse or a
///   softmax_cross_entropy;
///   "correct" `[rows]` i32, for softmax_cross_entropy: 1 if the first class
///   with the highest logit is the label, else 0.
/// Dropouts become their operands.
mlir::func::FuncOp buildEvaluation(mlir::func::FuncOp loss);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_EVALUATION_H
