//===- CompileKernels.cpp - LLVM dialect to an object file ----------------===//

#include "shardc/Target/CPU/CompileKernels.h"

#include "shardc/Conversion/LowerKernels.h"
#include "shardc/Target/LLVM/TranslateKernels.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace llvm;

namespace shardc {

StringRef getCpuTarget() { return "x86-64-v3"; }

ArrayRef<StringRef> getCpuFeatures() {
  static constexpr StringRef features[] = {"avx2", "fma", "bmi1", "bmi2",
                                           "f16c", "abm", "movbe"};
  return features;
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

Expected<std::string> compileToObject(mlir::ModuleOp kernels) {
  registerKernelTranslation(*kernels.getContext());
  initializeBackEnd();
  auto machine =
      createTargetMachine("x86_64-unknown-linux-gnu", getCpuTarget());
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
    function.addFnAttr("target-cpu", getCpuTarget());
    // The loops are written for vectors of eight floats.
    function.addFnAttr("prefer-vector-width", "256");
  }
  cleanUpKernels(**module, **machine);
  return emitKernels(**module, **machine, CodeGenFileType::ObjectFile);
}

Expected<std::string> compileKernels(mlir::ModuleOp module) {
  auto kernels = module.lookupSymbol<mlir::ModuleOp>(kernelModuleName);
  if (!kernels)
    return createStringError("the module has no @kernels: run codegen first");
  Expected<std::string> object = compileToObject(kernels);
  if (!object)
    return object.takeError();
  return linkSharedObject(*object);
}

} // namespace shardc
