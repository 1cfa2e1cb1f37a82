//===- ModulePipeline.h - The pipeline of a module --------------*- C++ -*-===//
//
// The schedule and the ranks of a module's `shardc.pipeline`, which `import`
// has verified. Reads the IR only; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MODULEPIPELINE_H
#define SHARDC_ANALYSIS_MODULEPIPELINE_H

#include "shardc/PipelineSchedules/PipelineSchedule.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// The schedule of the pipeline: that of its name, or the one whose text the
/// module has. An error, which is emitted, if the module has no pipeline or no
/// description of the training, or they do not suit each other.
mlir::FailureOr<PipelineSchedule> getPipelineSchedule(mlir::ModuleOp module);

/// By stage the rank that runs it; empty without a pipeline. The same errors.
mlir::FailureOr<std::vector<int>> getRanksOfStages(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEPIPELINE_H
