//===- BuildPrediction.h - The program of predictions -----------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_BUILDPREDICTION_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_BUILDPREDICTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Builds `@predict(params, inputs) -> prediction` before the function `loss`,
/// with the roles and shardings of its arguments: the output of the network
/// (see findPrediction). Dropouts become their operands. If `loss` has no such
/// value, notes the reason on the module instead, as `shardc.no_prediction`; if
/// the module has that note, there is nothing to build.
void buildPrediction(mlir::func::FuncOp loss);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_BUILDPREDICTION_H
