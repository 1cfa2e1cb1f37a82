//===- Import.cpp - Check a source module and resolve its names -----------===//

#include "ImportSteps.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Transforms/Passes.h"
#include "shardc/Transforms/Pipeline/VerifyPipeline.h"

namespace shardc {
#define GEN_PASS_DEF_IMPORTPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct ImportPass : shardc::impl::ImportPassBase<ImportPass> {
  using ImportPassBase::ImportPassBase;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Import,
                               ModulePhase::Import)))
      return signalPassFailure();
    if (failed(import(getOperation())))
      signalPassFailure();
  }

  LogicalResult import(ModuleOp module) {
    FailureOr<func::FuncOp> loss = verifySource(module);
    if (failed(loss) || failed(overrideRules(module, rules)))
      return failure();
    FailureOr<MeshOp> resolved = overrideMesh(
        module, mesh, stages > 0 ? StringRef(defaultStageAxis) : "");
    if (failed(resolved) ||
        failed(overridePipeline(
            *loss, *resolved,
            {stages, pipelineSchedule, virtualStages, mesh})) ||
        failed(resolveLogicalAxes(*loss, *resolved)) ||
        failed(overrideBatch(*loss, batch)) ||
        failed(overrideMicrobatches(*loss, microbatches)) ||
        failed(overrideDtype(*loss, dtype)) ||
        failed(overrideTraining(
            module, {optimizer, learningRate, schedule, clipNorm})) ||
        failed(overrideRecomputation(module, recompute)))
      return failure();
    if (failed(verifyPipeline(*loss, *resolved, pipelineSchedule)))
      return failure();
    return verifyAnnotations(*loss);
  }
};

} // namespace
