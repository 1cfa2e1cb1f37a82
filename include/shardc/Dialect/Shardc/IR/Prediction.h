//===- Prediction.h - The value that a loss is computed from ----*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHARDC_IR_PREDICTION_H
#define SHARDC_DIALECT_SHARDC_IR_PREDICTION_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace shardc {

/// Name of the program that makes predictions, and of its result.
inline constexpr llvm::StringLiteral kPredictName = "predict";
inline constexpr llvm::StringLiteral kPredictionName = "prediction";

/// The answer of `findPrediction`.
struct Prediction {
  /// Null: the loss has none.
  mlir::Value value;
  /// Why, with the place: "FILE:LINE:COL: …".
  std::string reason;
};

/// Finds the output of the network in `function`, whose body is one block: the
/// last value that has the rows of the batch, depends on no label, and through
/// which alone the loss depends on inputs. For a softmax_cross_entropy these
/// are the logits, for an mse it is the prediction. What the loss makes of it
/// before labels come in must not depend on parameters: a loss with several
/// heads has no such value. Nor has one without labels, unless it is made of
/// those two ops.
Prediction findPrediction(mlir::FunctionOpInterface function, mlir::Value loss);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_PREDICTION_H
