//===- PhaseEnd.cpp - The pass after each phase ---------------------------===//

#include "PhaseEnd.h"

#include "shardc/Pipelines/Phases.h"
#include "shardc/Support/WriteErrors.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace {

class PhaseEndPass : public PassWrapper<PhaseEndPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PhaseEndPass)

  PhaseEndPass(int index, std::string dumpDir, shardc::CompileState &state)
      : index(index), dumpDir(std::move(dumpDir)), state(state) {}

  StringRef getName() const override { return "PhaseEnd"; }

  void runOnOperation() override {
    const shardc::Phase &phase = shardc::getPhases()[index];
    ModuleOp module = getOperation();
    // The dump comes first: it helps most if the contract is broken.
    if (!dumpDir.empty() && failed(dump(module))) {
      state.hasUnwrittenDump = true;
      return signalPassFailure();
    }
    if (failed(verify(module)) || failed(phase.verify(module))) {
      state.hasBrokenContract = true;
      module.emitError("phase '")
          << phase.name << "' broke its contract: " << phase.contract;
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }

private:
  LogicalResult dump(ModuleOp module) {
    if (std::error_code error = llvm::sys::fs::create_directories(dumpDir))
      return module.emitError("cannot make the directory '")
             << dumpDir << "': " << error.message();
    std::string path = shardc::getDumpPath(dumpDir, index);
    std::string error;
    std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &error);
    if (!file)
      return module.emitError(error);
    module.print(file->os());
    error = shardc::finishOutput(file->os(), path);
    if (!error.empty())
      return module.emitError(error);
    file->keep();
    return success();
  }

  int index;
  std::string dumpDir;
  shardc::CompileState &state;
};

} // namespace

std::unique_ptr<Pass> shardc::createPhaseEndPass(int index, std::string dumpDir,
                                                 CompileState &state) {
  return std::make_unique<PhaseEndPass>(index, std::move(dumpDir), state);
}
