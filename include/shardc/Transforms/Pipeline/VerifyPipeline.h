//===- VerifyPipeline.h - Whether a loss suits its pipeline -----*- C++ -*-===//

#ifndef SHARDC_TRANSFORMS_PIPELINE_VERIFYPIPELINE_H
#define SHARDC_TRANSFORMS_PIPELINE_VERIFYPIPELINE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Checks the pipeline of the module of `loss` against mesh, rules,
/// microbatches and the number of ops, and the stages of ops: in range, none
/// before an operand's, and all or none of them there. Reports errors at their
/// place. Those in the text of a schedule begin with `scheduleFile`, if it is
/// from a file. Without a pipeline no op may have a stage.
mlir::LogicalResult verifyPipeline(mlir::func::FuncOp loss, MeshOp mesh,
                                   llvm::StringRef scheduleFile = "");

} // namespace shardc

#endif // SHARDC_TRANSFORMS_PIPELINE_VERIFYPIPELINE_H
