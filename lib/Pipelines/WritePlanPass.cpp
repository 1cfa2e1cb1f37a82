//===- WritePlanPass.cpp - The last phase ---------------------------------===//

#include "WritePlanPass.h"

#include "shardc/Target/Plan/BuildPlan.h"

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
    llvm::Expected<std::string> plan = shardc::compilePlan(module);
    if (!plan) {
      module.emitError() << llvm::toString(plan.takeError());
      return signalPassFailure();
    }
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
