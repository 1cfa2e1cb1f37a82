//===- EmitPtxPass.cpp - PTX for readers and assemblers -------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Target/CUDA/EmitPtx.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/Debug.h"
#include "llvm/Support/ToolOutputFile.h"

#define DEBUG_TYPE "shardc-emit-ptx"

using namespace mlir;

namespace shardc {

namespace {

class EmitPtxPass : public PassWrapper<EmitPtxPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitPtxPass)

  EmitPtxPass() = default;
  EmitPtxPass(const EmitPtxPass &other) : PassWrapper(other) {}

  StringRef getArgument() const override { return "shardc-emit-ptx"; }
  StringRef getDescription() const override {
    return "Write the PTX of the module's kernels";
  }

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Codegen,
                               ModulePhase::Codegen)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    llvm::Expected<std::string> ptx = emitPtx(module);
    if (!ptx) {
      module.emitError() << llvm::toString(ptx.takeError());
      return signalPassFailure();
    }
    LLVM_DEBUG(llvm::dbgs() << ptx->size() << " bytes of PTX\n");
    std::string error;
    auto file = openOutputFile(output, &error);
    if (!file) {
      module.emitError() << error;
      return signalPassFailure();
    }
    file->os() << *ptx;
    file->keep();
    markAllAnalysesPreserved();
  }

private:
  Option<std::string> output{*this, "output", llvm::cl::init("-"),
                             llvm::cl::desc("Where to; -: standard output")};
};

} // namespace

std::unique_ptr<Pass> createEmitPtxPass() {
  return std::make_unique<EmitPtxPass>();
}

void registerShardcCudaPasses() { PassRegistration<EmitPtxPass>(); }

} // namespace shardc
