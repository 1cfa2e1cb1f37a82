//===- TrialCompilation.h - Compilation of a copy on trial ------*- C++ -*-===//

#ifndef SHARDC_WHATIF_TRIALCOMPILATION_H
#define SHARDC_WHATIF_TRIALCOMPILATION_H

#include "shardc/PipelineSchedules/StageCut.h"
#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Transforms/MeasuredPlan.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// Takes `module` through the phases from `first` to `last` as a compilation
/// with `options` would, but without dumps, verification, contracts and memory
/// limits. Cuts into stages are kept in `stageCuts`, if it is not null. Unless
/// it `compares`, a searched plan is not compared with the one that follows the
/// annotations, and taken.
/// Diagnostics are dropped; returns the first error without its place, or "".
std::string compileOnTrial(mlir::ModuleOp module, int first, int last,
                           CompileOptions options,
                           StageCutCache *stageCuts = nullptr,
                           bool compares = true);

/// Takes the training step out of `module`, with all but evaluation and
/// prediction: these stay alone. After any phase up to `kernels`.
mlir::OwningOpRef<mlir::ModuleOp> takeStep(mlir::ModuleOp module);

/// The bytes that each function of `module`, after `propagate`, needs on a
/// device, arguments of the others included; with a pipeline on a device of the
/// rank that needs most. Takes the module up to `memory`.
llvm::Expected<std::vector<int64_t>>
getPeaksOnTrial(mlir::ModuleOp module, const CompileOptions &options);

/// What a step of `module`, after phase `phase`, needs; takes it up to
/// `memory`.
llvm::Expected<MeasuredPlan> measureOnTrial(mlir::ModuleOp module,
                                            llvm::StringRef phase,
                                            const CompileOptions &options);

/// Takes `module`, after `differentiate`, through `propagate` with a searched
/// plan, without a memory limit and without the comparison with the plan that
/// follows the annotations. Returns the first error, or "".
std::string searchOnTrial(mlir::ModuleOp module, CompileOptions options);

/// The estimate that reports show for the step (getStep) of `module`, after
/// `memory`. With a pipeline it is the time until the last rank ends, with and
/// without overlap alike, and the bytes of the rank that sends most. Fails if
/// there is no step, or its machine cannot be read.
llvm::Expected<PlanEstimate> getEstimate(mlir::ModuleOp module,
                                         const CompileOptions &options);

/// The same for `module` after `propagate`, which it takes up to `memory`. Also
/// fails if a phase, a contract or the memory limit refuses the module.
llvm::Expected<PlanEstimate> estimateOnTrial(mlir::ModuleOp module,
                                             const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_TRIALCOMPILATION_H
