//===- OpTimes.h - The times of a loss function's ops -----------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PIPELINE_OPTIMES_H
#define SHARDC_LIB_TRANSFORMS_PIPELINE_OPTIMES_H

#include "shardc/PipelineSchedules/StageCut.h"
#include "shardc/Report/TimeEstimate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// The costs of the ops of a loss function, by op.
struct OpCosts {
  std::vector<OpTimes> times;
  /// The bytes of parameters that the op is the first to use, and of the
  /// results that it keeps for the backward pass of one microbatch.
  std::vector<double> parameterBytes, stashBytes;
};

/// By op of `loss`, in a module whose `shardc.training` names it, the estimated
/// seconds of one microbatch on a device of `machine` that has all of it: of
/// the op, of the gradients that ops before it need, and of the other
/// gradients; and of sending all that crosses if a stage ends with the op. The
/// step is built on a copy and taken apart. Fails, with an error, if there is
/// no step.
mlir::FailureOr<OpCosts> estimateOpCosts(mlir::func::FuncOp loss,
                                         const Machine &machine);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PIPELINE_OPTIMES_H
