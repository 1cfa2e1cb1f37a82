//===- EmitPtx.cpp - Kernel functions to PTX ------------------------------===//

#include "shardc/Target/CUDA/EmitPtx.h"

#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Conversion/KernelsToGPU/LowerKernelsToGpu.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Target/LLVM/TranslateKernels.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>

using namespace llvm;

namespace shardc {

/// The version of the language. 7.8, of CUDA 11.8, is the first that knows
/// sm_89 and sm_90, and every driver since then reads it: a newer one would
/// only shut out drivers.
static constexpr const char *ptxVersion = "+ptx78";

static void initializeBackEnd() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

static void registerTranslation(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  mlir::registerGPUDialectTranslation(registry);
  mlir::registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
}

Expected<std::string> emitPtx(mlir::ModuleOp module) {
  auto kernels = module.lookupSymbol<mlir::gpu::GPUModuleOp>(kernelModuleName);
  if (!kernels)
    return createStringError("the module has no gpu.module @kernels: run "
                             "codegen for a GPU first");
  auto chip = kernels->getAttrOfType<mlir::StringAttr>(chipAttrName);
  if (!chip)
    return createStringError("the kernels do not say for which GPU they are: "
                             "expected '" +
                             chipAttrName + "'");
  registerTranslation(*module.getContext());
  initializeBackEnd();
  auto machine =
      createTargetMachine("nvptx64-nvidia-cuda", chip.getValue(), ptxVersion);
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  auto translated = translateKernels(kernels, context, **machine);
  if (!translated)
    return translated.takeError();
  cleanUpKernels(**translated, **machine);
  for (const Function &function : **translated)
    if (function.isDeclaration() && !function.isIntrinsic())
      return createStringError("the kernels need the function '" +
                               function.getName() + "', which no GPU provides");
  return emitKernels(**translated, **machine, CodeGenFileType::AssemblyFile);
}

} // namespace shardc
