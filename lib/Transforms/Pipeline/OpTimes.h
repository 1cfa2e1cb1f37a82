//===- OpTimes.h - The times of a loss function's ops -----------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PIPELINE_OPTIMES_H
#define SHARDC_LIB_TRANSFORMS_PIPELINE_OPTIMES_H

#include "shardc/PipelineSchedules/StageCut.h"
#include "shardc/Report/TimeEstimate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// By op of `loss`, in a module whose `shardc.training` names it, the estimated
/// seconds of one microbatch on a device of `machine` that has all of it: of
/// the op, of the gradients that ops before it need, and of the other
/// gradients; and of sending all that crosses if a stage ends with the op. The
/// step is built on a copy and taken apart. Fails, with an error, if there is
/// no step.
mlir::FailureOr<std::vector<OpTimes>> estimateOpTimes(mlir::func::FuncOp loss,
                                                      const Machine &machine);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PIPELINE_OPTIMES_H
