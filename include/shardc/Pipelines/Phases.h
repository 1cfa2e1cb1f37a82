//===- Phases.h - The phases of the compiler --------------------*- C++ -*-===//
//
// The table of phases, from which drivers, --compile-to, dumps, verification
// and docs are made. Constant data: thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_PHASES_H
#define SHARDC_PIPELINES_PHASES_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Support/ExitCodes.h"
#include "shardc/Transforms/MeasuredPlan.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <functional>

namespace shardc {

class StageCutCache;

/// The state of a compilation besides the IR; one per run of the phases.
struct CompileState {
  /// The memory estimate behind `--device-memory`: compiles `propagated`, a
  /// module after `propagate`, up to `memory`, and returns the bytes that each
  /// of its functions needs on a device. It runs phases itself, so the caller
  /// injects it (WhatIf has one).
  std::function<llvm::Expected<std::vector<int64_t>>(
      mlir::ModuleOp propagated, const CompileOptions &options)>
      getPeaks = [](mlir::ModuleOp, const CompileOptions &) {
        return llvm::createStringError("nobody here compiles plans on trial");
      };
  /// The measurement behind the cut of a pipeline and behind recomputation:
  /// compiles `module`, which is after phase `phase`, likewise. Null: there is
  /// none.
  std::function<llvm::Expected<MeasuredPlan>(mlir::ModuleOp module,
                                             llvm::StringRef phase,
                                             const CompileOptions &options)>
      measurePlan = {};
  /// The plan file's bytes, set by the phase `plan`.
  std::string plan;
  /// The explanation of the collectives as JSON, for the plan; may be empty.
  std::string explanation;
  /// The plan is not taken, so that nothing is verified after phases, unless
  /// with `verifyEach`: that is a quarter of the time.
  bool isTrial = false;
  /// Whether a phase broke its contract: a fault of the compiler.
  bool hasBrokenContract = false;
  /// Whether a file of `--shardc-dump-dir` could not be written.
  bool hasUnwrittenDump = false;
  /// Whether no plan that was tried fits the memory of a device.
  bool exceedsMemory = false;
  /// The time and byte estimate of a plan: compiles `propagated` likewise and
  /// returns the figures of its train step in the reports. With it, "cheapest"
  /// takes no plan that is worse than that of "follow"; without it, the plan
  /// that the search finds.
  std::function<llvm::Expected<PlanEstimate>(mlir::ModuleOp propagated,
                                             const CompileOptions &options)>
      estimatePlan = {};
  /// Borrowed: where cuts into stages are kept for other plans of the model.
  /// Null: nowhere.
  StageCutCache *stageCuts = nullptr;
};

/// The exit code of a compilation that failed.
inline ExitCode getFailureCode(const CompileState &state) {
  return state.hasBrokenContract  ? ExitCode::Internal
         : state.hasUnwrittenDump ? ExitCode::Usage
         : state.exceedsMemory    ? ExitCode::OutOfMemory
                                  : ExitCode::InvalidInput;
}

/// A phase: a contract, the passes that establish it and a check of it.
struct Phase {
  llvm::StringLiteral name;
  /// The condition that holds after the phase, in one line.
  llvm::StringLiteral contract;
  /// Appends its passes.
  void (*build)(mlir::OpPassManager &manager, const CompileOptions &options,
                CompileState &state);
  /// Checks the contract; emits an error where it is broken.
  mlir::LogicalResult (*verify)(mlir::ModuleOp module);
};

/// All phases, in order.
llvm::ArrayRef<Phase> getPhases();

/// Index of phase `name`, or -1.
int getPhaseIndex(llvm::StringRef name);

/// The names of all phases, in order.
std::vector<std::string> getPhaseNames();

/// Checks that phases [first, last] can run under `options`. An error, else "":
/// no phase among them makes a check that is asked for, or no phase from
/// `first` on reads an option that is not the default.
std::string checkPhases(int first, int last, const CompileOptions &options);

/// The file that receives the IR after phase `index`.
std::string getDumpPath(llvm::StringRef dumpDir, int index);

/// Appends phases [first, last], each followed by its check and, if
/// `options.dumpDir` is set, a dump. `state` must outlive the pass manager.
void buildPhases(mlir::OpPassManager &manager, int first, int last,
                 const CompileOptions &options, CompileState &state);

/// Has `state` told by the passes of `manager` that fail for lack of memory;
/// `state` must outlive it.
void noteMemoryErrors(mlir::PassManager &manager, CompileState &state);

/// Registers the dialects of modules of all phases.
void registerShardcDialects(mlir::DialectRegistry &registry);

/// Registers shardc's passes for textual pipelines.
void registerAllShardcPasses();

} // namespace shardc

#endif // SHARDC_PIPELINES_PHASES_H
