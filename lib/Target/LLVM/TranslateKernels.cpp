//===- TranslateKernels.cpp - Kernels as LLVM IR and back ends ------------===//

#include "shardc/Target/LLVM/TranslateKernels.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/DCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

namespace shardc {

Expected<std::unique_ptr<TargetMachine>>
createTargetMachine(StringRef triple, StringRef chip, StringRef features) {
  std::string message;
  const Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError(message);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Strict;
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, chip, features, options, Reloc::PIC_,
                                  CodeModel::Small, CodeGenOptLevel::Default));
  if (!machine)
    return createStringError("this LLVM generates no code for " + triple);
  return machine;
}

Expected<std::unique_ptr<Module>> translateKernels(mlir::Operation *kernels,
                                                   LLVMContext &context,
                                                   TargetMachine &machine) {
  std::unique_ptr<Module> module =
      mlir::translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return createStringError("the kernels cannot be translated to LLVM IR");
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  return module;
}

void cleanUpKernels(Module &module, TargetMachine &machine) {
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

Expected<std::string> emitKernels(Module &module, TargetMachine &machine,
                                  CodeGenFileType type) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager emitter;
  if (machine.addPassesToEmitFile(emitter, stream, nullptr, type))
    return createStringError("this LLVM writes no such files for " +
                             machine.getTargetTriple().str());
  emitter.run(module);
  return std::string(bytes.begin(), bytes.end());
}

} // namespace shardc
