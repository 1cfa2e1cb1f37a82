//===- CutTasks.cpp - The tasks of a pipeline -----------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_CUTTASKSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct CutTasksPass : shardc::impl::CutTasksPassBase<CutTasksPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    if (!getOperation()->hasAttr(pipelineAttrName))
      return;
    getOperation().emitError("`shardc.pipeline` is not supported yet behind "
                             "the phase 'collectives': no plan can be made "
                             "(--stages=0 takes the pipeline away)");
    signalPassFailure();
  }
};

} // namespace
