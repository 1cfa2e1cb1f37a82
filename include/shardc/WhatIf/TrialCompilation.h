//===- TrialCompilation.h - Compiling on trial ------------------*- C++ -*-===//

#ifndef SHARDC_WHATIF_TRIALCOMPILATION_H
#define SHARDC_WHATIF_TRIALCOMPILATION_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// Takes `module` through the phases from `first` to `last` as a compilation
/// with `options` would, but dumps and verifies nothing and holds it against no
/// contract and no limit of memory. What is said of it is dropped; returns the
/// first error without its place, or nothing if all went well.
std::string compileOnTrial(mlir::ModuleOp module, int first, int last,
                           CompileOptions options);

/// The bytes that each function of `module`, which is after `propagate`, needs
/// on a device, arguments of the others included; takes it up to `memory`.
llvm::Expected<std::vector<int64_t>>
getPeaksOnTrial(mlir::ModuleOp module, const CompileOptions &options);

/// Takes `module`, which is after `differentiate`, through `propagate` with the
/// plan that a search finds, without a limit of memory and without comparing it
/// with the plan that follows the annotations. Returns the first error, or "".
std::string searchOnTrial(mlir::ModuleOp module, CompileOptions options);

/// What the report says of the step (getStep) of `module`, which is after
/// `memory`. Fails if there is none, or its machine cannot be read.
llvm::Expected<PlanEstimate> getEstimate(mlir::ModuleOp module,
                                         const CompileOptions &options);

/// What the report will say of the step of `module`, which is after
/// `propagate`; takes it up to `memory`. Fails if it is refused on the way,
/// also by a contract or by the limit of memory.
llvm::Expected<PlanEstimate> estimateOnTrial(mlir::ModuleOp module,
                                             const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_TRIALCOMPILATION_H
