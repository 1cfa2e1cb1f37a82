//===- ModulePhase.h - Which phase IR is of ---------------------*- C++ -*-===//
//
// Passes and drivers take IR of certain phases. The phase follows from the IR
// itself, so that edited IR and IR written by hand need no mark. Functions that
// read the IR; thread-safe on distinct modules.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MODULEPHASE_H
#define SHARDC_ANALYSIS_MODULEPHASE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <optional>

namespace shardc {

/// The phases whose IR can be told apart, in order. `Import` is a source module
/// as well, `Partition` the phase `collectives` as well.
enum class ModulePhase {
  Import,
  Differentiate,
  Propagate,
  Partition,
  Kernels,
  Schedule,
  Memory,
  Codegen
};

/// The name of `phase` in the table of phases.
llvm::StringRef getPhaseName(ModulePhase phase);

/// The last phase of which `module` shows the work; none for functions that
/// show none and that no training description makes a source module.
std::optional<ModulePhase> findPhase(mlir::ModuleOp module);

/// The input contract of a pass: `module` is of a phase from `first` to `last`,
/// or of none. Emits an error that names `pass`, the phase found and those
/// expected.
mlir::LogicalResult checkInputPhase(const mlir::Pass &pass,
                                    mlir::ModuleOp module, ModulePhase first,
                                    ModulePhase last);

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEPHASE_H
