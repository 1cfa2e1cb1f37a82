//===- MlirFlags.h - The flags that shardc-opt shares with mlir-opt -------===//
//
// MLIR registers some fifty flags, and LLVM's command line reads their values.
// These flags are those that shardc-opt documents; their values are checked
// first, so that LLVM finds no error in them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_OPT_MLIRFLAGS_H
#define SHARDC_OPT_MLIRFLAGS_H

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

#include <string>

namespace shardc {

/// The passes, and the flags of mlir-opt. Construct one before the command line
/// is read and after the passes are registered, and at most one per process.
class MlirFlags {
public:
  explicit MlirFlags(llvm::cl::OptionCategory &category);

  /// The error in the value of a pass, or of a flag of MLIR's own, or "". For
  /// `ToolDescription`.
  std::string checkValue(llvm::StringRef flag, llvm::StringRef value) const;

  /// The first contradiction between flags, once they are read, or "".
  std::string check() const;

  mlir::MlirOptMainConfig getConfig() const;

  /// Adds the passes that the flags name, behind those of `manager`.
  mlir::LogicalResult addPasses(mlir::PassManager &manager) const;

private:
  mlir::PassPipelineCLParser passes;
  llvm::cl::opt<bool> splitInput, verifyDiagnostics, verifyEach,
      allowUnregistered, dumpPipeline;
};

} // namespace shardc

#endif // SHARDC_OPT_MLIRFLAGS_H
