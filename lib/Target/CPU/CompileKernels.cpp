//===- CompileKernels.cpp - LLVM dialect to an object file ----------------===//

#include "shardc/Target/CPU/CompileKernels.h"

#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Target/LLVM/TranslateKernels.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace llvm;

namespace shardc {

const CpuTarget &getBaseTarget() {
  static const CpuTarget target = {
      "x86-64-v3",
      {"avx2", "fma", "bmi1", "bmi2", "f16c", "abm", "movbe"},
      256};
  return target;
}

const CpuTarget &getWideTarget() {
  static const CpuTarget target = {"x86-64-v4",
                                   {"avx2", "fma", "bmi1", "bmi2", "f16c",
                                    "abm", "movbe", "avx512f", "avx512bw",
                                    "avx512cd", "avx512dq", "avx512vl"},
                                   512};
  return target;
}

std::vector<const CpuTarget *> getCpuTargets(StringRef level) {
  std::vector<const CpuTarget *> targets;
  for (const CpuTarget *target : {&getBaseTarget(), &getWideTarget()})
    if (level.empty() || level == target->name)
      targets.push_back(target);
  return targets;
}

static void initializeBackEnd() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

void registerKernelTranslation(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
}

Expected<std::string> compileToObject(mlir::ModuleOp kernels,
                                      const CpuTarget &target) {
  registerKernelTranslation(*kernels.getContext());
  initializeBackEnd();
  auto machine = createTargetMachine("x86_64-unknown-linux-gnu", target.name);
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  auto module = translateKernels(kernels, context, **machine);
  if (!module)
    return module.takeError();
  for (Function &function : **module) {
    if (function.isDeclaration())
      continue;
    function.setDoesNotThrow();
    function.addFnAttr("target-cpu", target.name);
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.vectorBits));
  }
  cleanUpKernels(**module, **machine);
  return emitKernels(**module, **machine, CodeGenFileType::ObjectFile);
}

Expected<std::string> compileKernels(mlir::ModuleOp module,
                                     const CpuTarget &target) {
  auto kernels = module.lookupSymbol<mlir::ModuleOp>(kernelModuleName);
  if (!kernels)
    return createStringError("the module has no @kernels: run codegen first");
  mlir::OwningOpRef<mlir::ModuleOp> wide;
  if (target.vectorBits > getBaseTarget().vectorBits) {
    wide = lowerWideKernels(module);
    if (!wide)
      return createStringError("the kernels cannot be lowered for AVX-512");
    kernels = *wide;
  }
  Expected<std::string> object = compileToObject(kernels, target);
  if (!object)
    return object.takeError();
  return linkSharedObject(*object);
}

} // namespace shardc
