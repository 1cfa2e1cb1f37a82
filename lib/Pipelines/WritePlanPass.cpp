//===- WritePlanPass.cpp - The last phase ---------------------------------===//

#include "WritePlanPass.h"

#include "shardc/Target/CPU/CompileKernels.h"
#if __has_include("shardc/Target/Plan/WritePlan.h")
#include "shardc/Target/Plan/WritePlan.h"
#else
namespace shardc {
static mlir::FailureOr<std::string> writePlan(mlir::ModuleOp module,
                                              llvm::StringRef) {
  return mlir::FailureOr<std::string>(module.emitError("no plan writer yet"));
}
} // namespace shardc
#endif

using namespace mlir;

namespace {

class WritePlanPass
    : public PassWrapper<WritePlanPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WritePlanPass)

  explicit WritePlanPass(shardc::CompileState &state) : state(state) {}

  StringRef getName() const override { return "WritePlan"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::Expected<std::string> code = shardc::compileKernels(module);
    if (!code) {
      module.emitError() << llvm::toString(code.takeError());
      return signalPassFailure();
    }
    FailureOr<std::string> plan = shardc::writePlan(module, *code);
    if (failed(plan))
      return signalPassFailure();
    state.plan = std::move(*plan);
    markAllAnalysesPreserved();
  }

private:
  shardc::CompileState &state;
};

} // namespace

std::unique_ptr<Pass> shardc::createWritePlanPass(CompileState &state) {
  return std::make_unique<WritePlanPass>(state);
}
