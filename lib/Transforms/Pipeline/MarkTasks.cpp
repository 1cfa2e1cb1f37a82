//===- MarkTasks.cpp - The tasks of a pipeline's stages -------------------===//
//
// A task is what a stage does for one microbatch in one go: its forward pass,
// its backward pass, or one of the two parts of the latter. Each op of the loop
// over microbatches gets the letter of its task, or part of a task. From here
// on no op is joined with one of another letter. So kernels, and with them
// bits, do not depend on whether the schedule parts the backward pass.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"
#include "shardc/Transforms/Pipeline/InputGradients.h"

namespace shardc {
#define GEN_PASS_DEF_MARKTASKSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

static void markTasks(Block &body) {
  llvm::DenseSet<Operation *> inputGradients = findInputGradients(body);
  for (Operation &op : body) {
    if (!op.hasAttr(stageAttrName))
      continue;
    const char *letter = "F";
    if (isPart(&op, Part::Backward))
      letter = inputGradients.contains(&op) ? "I" : "W";
    op.setAttr(taskAttrName, StringAttr::get(op.getContext(), letter));
  }
}

namespace {

struct MarkTasksPass : shardc::impl::MarkTasksPassBase<MarkTasksPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkInputPhase(*this, module, ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    if (!module->hasAttr(pipelineAttrName))
      return;
    module.walk([](AccumulateOp loop) { markTasks(loop.getBody().front()); });
  }
};

} // namespace
