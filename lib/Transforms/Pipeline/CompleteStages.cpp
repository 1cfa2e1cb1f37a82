//===- CompleteStages.cpp - The stages of what partitioning adds ----------===//
//
// Collectives, masks and slices belong to the stage whose value they move: that
// of their operands, or, where these are on every rank, that of their users.
// One with users on several stages is cloned for each of them.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Transforms/Passes.h"

#include <map>

namespace shardc {
#define GEN_PASS_DEF_COMPLETESTAGESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The stage that `value` is made on, or none.
static IntegerAttr getStageMade(Value value) {
  Operation *op = getComputingOp(value);
  return op ? getStageOfResults(op) : IntegerAttr();
}

static bool canHaveStage(Operation *op) {
  return !isa<TransferOp, AccumulateOp>(op) &&
         !op->hasTrait<OpTrait::IsTerminator>() && op->getNumResults() > 0;
}

/// From the operands, in program order.
static void takeFromOperands(Block &block) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<AccumulateOp>(op))
      takeFromOperands(loop.getBody().front());
    if (!canHaveStage(&op) || op.hasAttr(stageAttrName))
      continue;
    for (Value operand : op.getOperands())
      if (IntegerAttr stage = getStageMade(operand))
        op.setAttr(stageAttrName, stage);
  }
}

/// From the users, against program order.
static void takeFromUsers(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (auto loop = dyn_cast<AccumulateOp>(op))
      takeFromUsers(loop.getBody().front());
    // Each rank has a copy of what all compute from nothing that is stored.
    if (!canHaveStage(&op) || op.hasAttr(stageAttrName) ||
        op.getNumOperands() == 0)
      continue;
    std::map<int64_t, SmallVector<OpOperand *>> uses;
    bool isUsedEverywhere = false;
    for (OpOperand &use : op.getUses()) {
      if (IntegerAttr stage = getStageOfUse(use.getOwner()))
        uses[stage.getInt()].push_back(&use);
      else
        isUsedEverywhere = true;
    }
    if (uses.empty())
      continue;
    OpBuilder builder(&op);
    builder.setInsertionPointAfter(&op);
    for (auto &[stage, usesThere] : uses) {
      bool isLast = !isUsedEverywhere && stage == uses.rbegin()->first;
      Operation *copy = isLast ? &op : builder.clone(op);
      copy->setAttr(stageAttrName, builder.getI64IntegerAttr(stage));
      for (OpOperand *use : usesThere)
        for (auto [from, to] :
             llvm::zip_equal(op.getResults(), copy->getResults()))
          if (use->get() == from)
            use->set(to);
    }
  }
}

namespace {

struct CompleteStagesPass
    : shardc::impl::CompleteStagesPassBase<CompleteStagesPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    if (!getOperation()->hasAttr(pipelineAttrName))
      return;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      takeFromOperands(function.getBody().front());
      takeFromUsers(function.getBody().front());
    }
  }
};

} // namespace
