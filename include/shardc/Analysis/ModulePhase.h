//===- ModulePhase.h - The phase of a module --------------------*- C++ -*-===//
//
// Passes and drivers accept IR of certain phases. The phase follows from the IR
// itself, so that edited or hand-written IR needs no mark. Functions that read
// the IR; thread-safe on distinct modules.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MODULEPHASE_H
#define SHARDC_ANALYSIS_MODULEPHASE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <optional>

namespace shardc {

/// The phases that the IR tells apart, in order. `Import` covers source modules
/// as well, and `Partition` the phase `collectives`.
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

/// The last phase whose work `module` shows; none if its functions show none
/// and it has no training description, which would make it a source module.
std::optional<ModulePhase> findPhase(mlir::ModuleOp module);

/// The input contract of a pass: `module` is of a phase from `first` to `last`,
/// or of none. Emits an error that names `pass`, the phase found and those
/// expected.
mlir::LogicalResult checkInputPhase(const mlir::Pass &pass,
                                    mlir::ModuleOp module, ModulePhase first,
                                    ModulePhase last);

} // namespace shardc

#endif // SHARDC_ANALYSIS_MODULEPHASE_H
