//===- CompileKernels.cpp - LLVM dialect to an object file ----------------===//

#include "shardc/Target/CPU/CompileKernels.h"

#include "shardc/Conversion/LowerKernels.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

using namespace llvm;

namespace shardc {

StringRef getCpuTarget() { return "x86-64-v3"; }

ArrayRef<StringRef> getCpuFeatures() {
  static constexpr StringRef features[] = {"avx2", "fma", "bmi1", "bmi2",
                                           "f16c", "abm", "movbe"};
  return features;
}

static Expected<std::unique_ptr<TargetMachine>> createTargetMachine() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  constexpr const char *triple = "x86_64-unknown-linux-gnu";
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError(message);
  TargetOptions options;
  // Multiply-adds are fused where the program says so, nowhere else.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, getCpuTarget(), /*Features=*/"", options, Reloc::PIC_,
      CodeModel::Small, CodeGenOptLevel::Default));
  if (!machine)
    return createStringError("no x86-64 code generator in this LLVM");
  return machine;
}

/// Cleans up what the emitter writes plainly: common subexpressions, invariant
/// code, dead code. Loops are vectorised and unrolled already, and no pass here
/// replaces loops by library calls.
static void optimize(Module &module, TargetMachine &machine) {
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  passes.addPass(InstCombinePass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()),
                                                 /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass());
  passes.addPass(DCEPass());
  ModulePassManager manager;
  manager.addPass(createModuleToFunctionPassAdaptor(std::move(passes)));
  manager.run(module, modules);
}

void registerKernelTranslation(mlir::MLIRContext &context) {
  mlir::DialectRegistry registry;
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
}

Expected<std::string> compileToObject(mlir::ModuleOp kernels) {
  registerKernelTranslation(*kernels.getContext());
  LLVMContext context;
  std::unique_ptr<Module> module =
      mlir::translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return createStringError("the kernels cannot be translated to LLVM IR");
  auto machine = createTargetMachine();
  if (!machine)
    return machine.takeError();
  module->setTargetTriple((*machine)->getTargetTriple().str());
  module->setDataLayout((*machine)->createDataLayout());
  for (Function &function : *module) {
    if (function.isDeclaration())
      continue;
    function.setDoesNotThrow();
    function.addFnAttr("target-cpu", getCpuTarget());
    // The loops are written for vectors of eight floats.
    function.addFnAttr("prefer-vector-width", "256");
  }
  optimize(*module, **machine);
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager emitter;
  if ((*machine)->addPassesToEmitFile(emitter, stream, nullptr,
                                      CodeGenFileType::ObjectFile))
    return createStringError("object files cannot be written by this LLVM");
  emitter.run(*module);
  return std::string(bytes.begin(), bytes.end());
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
