//===- WritePlanPass.cpp - The last phase: writes the plan ----------------===//

#include "WritePlanPass.h"

#include "shardc/Support/TargetSpec.h"
#include "shardc/Target/Plan/BuildPlan.h"

using namespace mlir;

static bool isForCpu(const std::string &target) {
  std::string error;
  auto spec = shardc::parseTargetSpec(target, error);
  return spec && spec->kind == shardc::TargetSpec::Kind::CPU;
}

namespace {

class WritePlanPass
    : public PassWrapper<WritePlanPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WritePlanPass)

  WritePlanPass(const shardc::CompileOptions &compileOptions,
                shardc::CompileState &state)
      : machine(compileOptions.machine),
        matmulPrecision(compileOptions.matmulPrecision),
        ptxas(compileOptions.ptxas), needsCubin(compileOptions.needsCubin),
        isForCpus(isForCpu(compileOptions.target)), state(state) {}

  StringRef getName() const override { return "WritePlan"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    shardc::PlanOptions options;
    options.explanation = state.explanation;
    options.machine = machine;
    options.matmulPrecision = matmulPrecision;
    options.ptxas = ptxas;
    options.needsCubin = needsCubin;
    options.makeWideCode = isForCpus;
    llvm::Expected<std::string> plan = shardc::compilePlan(module, options);
    if (!plan) {
      module.emitError() << llvm::toString(plan.takeError());
      return signalPassFailure();
    }
    state.plan = std::move(*plan);
    markAllAnalysesPreserved();
  }

private:
  std::string machine, matmulPrecision, ptxas;
  bool needsCubin, isForCpus;
  shardc::CompileState &state;
};

} // namespace

std::unique_ptr<Pass> shardc::createWritePlanPass(const CompileOptions &options,
                                                  CompileState &state) {
  return std::make_unique<WritePlanPass>(options, state);
}
