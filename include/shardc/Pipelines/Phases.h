//===- Phases.h - The phases of the compiler --------------------*- C++ -*-===//
//
// The one table that drivers, --compile-to, per-phase dumps, verification and
// docs are driven by. Constant data: thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINES_PHASES_H
#define SHARDC_PIPELINES_PHASES_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Error.h"

#include <functional>

namespace shardc {

/// What a compilation has besides the IR. One per run of the phases.
struct CompileState {
  /// Measures a plan before it is chosen: compiles `propagated`, a module after
  /// `propagate`, up to `memory`, and returns the bytes that each of its
  /// functions needs on a device. `--device-memory` asks for it. It runs phases
  /// itself, so that the caller of the phases brings it (WhatIf has one).
  std::function<llvm::Expected<std::vector<int64_t>>(
      mlir::ModuleOp propagated, const CompileOptions &options)>
      getPeaks = [](mlir::ModuleOp, const CompileOptions &) {
        return llvm::createStringError("nobody here compiles plans on trial");
      };
  /// The plan file's bytes, set by the phase `plan`.
  std::string plan;
  /// Why the programs communicate, as JSON, for the plan; may be empty.
  std::string explanation;
  /// Whether a phase broke its contract: a fault of the compiler.
  bool hasBrokenContract = false;
  /// Estimates a plan before it is chosen: compiles `propagated` likewise, and
  /// returns what the report will say of its train step. With it, "cheapest"
  /// takes no plan that is worse than what "follow" makes; without, it takes
  /// what the search finds.
  std::function<llvm::Expected<PlanEstimate>(mlir::ModuleOp propagated,
                                             const CompileOptions &options)>
      estimatePlan = {};
};

/// One step of the compiler: what it promises, how it is done, how the promise
/// is checked.
struct Phase {
  llvm::StringLiteral name;
  /// What holds after it, in one line.
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

/// What is wrong with running phases [first, last] under `options`, or "": a
/// check is asked for of a phase that is not among them, or an option is not
/// the default that no phase from `first` on takes.
std::string checkPhases(int first, int last, const CompileOptions &options);

/// The file that the IR after phase `index` is dumped into.
std::string getDumpPath(llvm::StringRef dumpDir, int index);

/// Appends phases [first, last] with a check after each and, if
/// `options.dumpDir` is set, a dump. `state` must outlive the pass manager.
void buildPhases(mlir::OpPassManager &manager, int first, int last,
                 const CompileOptions &options, CompileState &state);

/// Registers the dialects that shardc's modules consist of in any phase.
void registerShardcDialects(mlir::DialectRegistry &registry);

/// Registers shardc's passes for textual pipelines.
void registerAllShardcPasses();

} // namespace shardc

#endif // SHARDC_PIPELINES_PHASES_H
