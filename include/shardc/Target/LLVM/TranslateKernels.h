//===- TranslateKernels.h - Kernels as LLVM IR and back ends ----*- C++ -*-===//
//
// What generating code for CPUs and GPUs shares: how machines round,
// translation to LLVM IR, the passes over it, the text or object that a back
// end writes. Stateless; thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_LLVM_TRANSLATEKERNELS_H
#define SHARDC_TARGET_LLVM_TRANSLATEKERNELS_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace shardc {

/// What generates position-independent code for `chip` with `features` of
/// `triple`, whose back end the caller has initialised. Multiply-adds are fused
/// where the program says so, nowhere else: CPUs and GPUs compute the same.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef triple, llvm::StringRef chip,
                    llvm::StringRef features = "");

/// Translates `kernels`, a module of functions of the LLVM dialect, to LLVM IR
/// for the machine. The translations of the dialects in it are registered.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateKernels(mlir::Operation *kernels, llvm::LLVMContext &context,
                 llvm::TargetMachine &machine);

/// Cleans up what the emitter writes plainly: common subexpressions, invariant
/// code, dead code. Loops are vectorised and unrolled already, and no pass here
/// replaces loops by library calls.
void cleanUpKernels(llvm::Module &module, llvm::TargetMachine &machine);

/// What the machine's back end writes for the module.
llvm::Expected<std::string> emitKernels(llvm::Module &module,
                                        llvm::TargetMachine &machine,
                                        llvm::CodeGenFileType type);

} // namespace shardc

#endif // SHARDC_TARGET_LLVM_TRANSLATEKERNELS_H
