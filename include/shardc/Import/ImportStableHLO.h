//===- ImportStableHLO.h - JAX programs as source modules -------*- C++ -*-===//
//
// Reads the text that `shardc.jax` (python/) exports: StableHLO in generic
// form, with the roles of shardc on its arguments (docs/JAX.md). Thread-safe on
// distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_IMPORT_IMPORTSTABLEHLO_H
#define SHARDC_IMPORT_IMPORTSTABLEHLO_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace llvm {
class SourceMgr;
}

namespace shardc {

/// Whether `text` has ops of StableHLO, outside of comments.
bool hasStableHLO(llvm::StringRef text);

/// The source module of the StableHLO in `sources`, whose locations are those
/// of the Python program. Emits errors at them and returns none if it cannot be
/// imported.
mlir::OwningOpRef<mlir::ModuleOp> importStableHLO(llvm::SourceMgr &sources,
                                                  mlir::MLIRContext *context);

/// The same, as text with locations. Text that has no StableHLO stays as it is.
/// Errors go to `errors`; then the result is none.
std::optional<std::string> importStableHLOText(llvm::StringRef text,
                                               llvm::StringRef name,
                                               llvm::raw_ostream &errors);

} // namespace shardc

#endif // SHARDC_IMPORT_IMPORTSTABLEHLO_H
