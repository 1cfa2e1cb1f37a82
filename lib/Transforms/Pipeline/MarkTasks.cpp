//===- MarkTasks.cpp - The tasks of a pipeline's stages -------------------===//
//
// A task is what a stage does for one microbatch in one go: its forward pass,
// its backward pass, or one of the two parts of the latter. Each op of the loop
// over microbatches gets the letter of its task. From here on no op is joined
// with one of another task.
//
//===----------------------------------------------------------------------===//

#include "InputGradients.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_MARKTASKSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Whether the backward pass of `schedule` is in two parts.
static bool hasTwoParts(const PipelineSchedule &schedule) {
  return llvm::any_of(schedule.ranks, [](const auto &tasks) {
    return llvm::any_of(tasks, [](const PipelineTask &task) {
      return task.kind == TaskKind::WeightGradient;
    });
  });
}

static void markTasks(Block &body, bool isInTwoParts) {
  llvm::DenseSet<Operation *> inputGradients = findInputGradients(body);
  for (Operation &op : body) {
    if (!op.hasAttr(stageAttrName))
      continue;
    const char *letter = "F";
    if (isPart(&op, Part::Backward))
      letter = !isInTwoParts ? "B" : inputGradients.contains(&op) ? "I" : "W";
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
    FailureOr<PipelineSchedule> schedule = getPipelineSchedule(module);
    if (failed(schedule))
      return signalPassFailure();
    module.walk([&](AccumulateOp loop) {
      markTasks(loop.getBody().front(), hasTwoParts(*schedule));
    });
  }
};

} // namespace
