//===- PhaseInput.cpp - Checks IR that enters between two phases ----------===//

#include "shardc/Pipelines/PhaseInput.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Conversion/KernelEmitter/KernelDialects.h"
#include "shardc/Pipelines/Phases.h"

using namespace mlir;
using namespace shardc;

static LogicalResult checkIsOfPhase(ModuleOp module, const Phase &phase) {
  std::optional<ModulePhase> found = findPhase(module);
  // Functions that show no phase: the phases that follow report missing input.
  if (!found)
    return success();
  auto emitPhaseError = [&](Location place) {
    return emitError(place, "expected IR of the phase '")
           << phase.name << "', found IR of the phase '" << getPhaseName(*found)
           << "'";
  };
  // IR may show less than its phase: without collectives there is nothing to
  // start and to wait for. It never shows more.
  int index = getPhaseIndex(phase.name);
  int last = getPhaseIndex(getPhaseName(*found));
  bool isSource = *found == ModulePhase::Import;
  if (last > index || (isSource && last < index) ||
      (phase.name == "codegen" && last < index))
    return emitPhaseError(module.getLoc());
  std::string why;
  Location place = module.getLoc();
  {
    ScopedDiagnosticHandler handler(module.getContext(),
                                    [&](Diagnostic &diagnostic) {
                                      if (why.empty()) {
                                        why = diagnostic.str();
                                        place = diagnostic.getLocation();
                                      }
                                      return success();
                                    });
    if (succeeded(phase.verify(module)))
      return success();
  }
  if (getPhaseName(*found) == phase.name)
    return emitError(place,
                     "expected IR that keeps the contract of the phase '")
           << phase.name << "': " << why;
  return emitPhaseError(place) << ": " << why;
}

namespace {

class PhaseInputPass
    : public PassWrapper<PhaseInputPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PhaseInputPass)

  explicit PhaseInputPass(int index) : index(index) {}

  StringRef getName() const override { return "PhaseInput"; }

  /// The ops that `plan` adds to kernels need the dialects that `codegen`
  /// loads.
  void getDependentDialects(DialectRegistry &registry) const override {
    insertKernelDialects(registry);
  }

  void runOnOperation() override {
    if (failed(checkIsOfPhase(getOperation(), getPhases()[index])))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  int index;
};

} // namespace

std::unique_ptr<Pass> shardc::createPhaseInputPass(int index) {
  return std::make_unique<PhaseInputPass>(index);
}
