//===- CompileKernels.h - Kernel functions to a shared object ---*- C++ -*-===//
//
// Code is generated for levels of x86-64, never for the host, so that equal
// modules give equal bytes everywhere. Calls may come from several threads;
// linking is serialised.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TARGET_CPU_COMPILEKERNELS_H
#define SHARDC_TARGET_CPU_COMPILEKERNELS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace shardc {

/// An instruction set that code is generated for.
struct CpuTarget {
  llvm::StringRef name;
  /// The features that the CPU must have, with the names of /proc/cpuinfo.
  std::vector<llvm::StringRef> features;
  /// Bits of the vectors that its loops are written for.
  int64_t vectorBits;
};

/// x86-64-v3, which has AVX2.
const CpuTarget &getBaseTarget();
/// x86-64-v4, which has AVX-512.
const CpuTarget &getWideTarget();
/// The targets of a plan for `level`, such as "x86-64-v3"; empty: all of them,
/// from the one with the fewest features on.
std::vector<const CpuTarget *> getCpuTargets(llvm::StringRef level);

/// Compiles `kernels`, a module of LLVM dialect functions, to an object file.
llvm::Expected<std::string>
compileToObject(mlir::ModuleOp kernels,
                const CpuTarget &target = getBaseTarget());

/// Links an object file into an ELF shared object that exports its functions.
/// It needs no other library, nor symbols beyond memcpy, memmove and memset;
/// anything else undefined is an error that names the symbol.
llvm::Expected<std::string> linkSharedObject(llvm::StringRef object);

/// Registers the translations of kernels in the context's registry.
void registerKernelTranslation(mlir::MLIRContext &context);

/// The shared object of a whole module after `codegen`, for CPUs of `target`.
/// The kernels in the nested module @kernels are for the base target; for wider
/// vectors their functions are built again.
llvm::Expected<std::string>
compileKernels(mlir::ModuleOp module,
               const CpuTarget &target = getBaseTarget());

} // namespace shardc

#endif // SHARDC_TARGET_CPU_COMPILEKERNELS_H
