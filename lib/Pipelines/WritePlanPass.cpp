//===- WritePlanPass.cpp - The last phase: writes the plan ----------------===//

#include "WritePlanPass.h"

#include "shardc/Support/TargetSpec.h"
#include "shardc/Target/Plan/BuildPlan.h"

using namespace mlir;

/// The CPUs of the target. An emulated GPU has one form on CPUs.
static std::vector<const shardc::CpuTarget *>
getCpuTargets(const std::string &target) {
  std::string error;
  auto spec = shardc::parseTargetSpec(target, error);
  if (!spec || spec->kind != shardc::TargetSpec::Kind::CPU)
    return {&shardc::getBaseTarget()};
  return shardc::getCpuTargets(spec->cpuLevel);
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
        cpuTargets(::getCpuTargets(compileOptions.target)), state(state) {}

  StringRef getName() const override { return "WritePlan"; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    shardc::PlanOptions options;
    options.explanation = state.explanation;
    options.machine = machine;
    options.matmulPrecision = matmulPrecision;
    options.ptxas = ptxas;
    options.needsCubin = needsCubin;
    options.cpuTargets = cpuTargets;
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
  bool needsCubin;
  std::vector<const shardc::CpuTarget *> cpuTargets;
  shardc::CompileState &state;
};

} // namespace

std::unique_ptr<Pass> shardc::createWritePlanPass(const CompileOptions &options,
                                                  CompileState &state) {
  return std::make_unique<WritePlanPass>(options, state);
}
