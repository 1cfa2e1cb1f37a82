//===- TranslateKernels.h - Kernels as LLVM IR and back ends ----*- C++ -*-===//
//
// Code generation that CPUs and GPUs share: rounding, translation to LLVM IR,
// the passes over it, the text or object of a back end. Stateless; thread-safe
// on distinct contexts.
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

/// A target machine for position-independent code for `chip` with `features` of
/// `triple`, whose back end the caller has initialised. Multiply-adds are fused
/// where the program says so and nowhere else, so CPUs and GPUs compute the
/// same.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef triple, llvm::StringRef chip,
                    llvm::StringRef features = "");

/// Translates `kernels`, a module of functions of the LLVM dialect, to LLVM IR
/// for the machine. The translations of the dialects in it are registered.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateKernels(mlir::Operation *kernels, llvm::LLVMContext &context,
                 llvm::TargetMachine &machine);

/// Cleans up the plain code of the emitter: common subexpressions, invariant
/// code, dead code. Loops are vectorised and unrolled already, and no pass here
/// replaces loops by library calls.
void cleanUpKernels(llvm::Module &module, llvm::TargetMachine &machine);

/// The output of the machine's back end for the module.
llvm::Expected<std::string> emitKernels(llvm::Module &module,
                                        llvm::TargetMachine &machine,
                                        llvm::CodeGenFileType type);

} // namespace shardc

#endif // SHARDC_TARGET_LLVM_TRANSLATEKERNELS_H
