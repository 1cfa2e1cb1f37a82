//===- TrainStep.h - Whole train steps of JAX -------------------*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_TRAINSTEP_H
#define SHARDC_LIB_IMPORT_TRAINSTEP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Erases the ops whose results nothing uses.
void eraseDeadOps(mlir::func::FuncOp function);

/// Completes `step`, whose results have names, as `differentiate` would leave
/// it: every op has its part of the step, and `@evaluate` computes the loss.
void completeTrainStep(mlir::func::FuncOp step);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_TRAINSTEP_H
