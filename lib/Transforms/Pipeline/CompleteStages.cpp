//===- CompleteStages.cpp - The stages of what partitioning adds ----------===//
//
// Collectives, masks and slices belong to the stage whose value they move: that
// of their operands, or, where these are on every rank, that of their users. So
// do those that move a value of the forward pass for the backward pass. One
// with users on several stages is cloned for each of them.
//
// Where scalars of several stages are added (InsertTransfers.cpp), inserts the
// all_reduce over the pipeline's axis that gives the sum to all ranks, or adds
// the axis to the one that follows.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
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

/// Whether `op` moves a value of the forward pass for the backward pass.
static bool movesForGradients(Operation *op) {
  return isPart(op, Part::Backward) &&
         llvm::any_of(op->getOperands(), [](Value operand) {
           Operation *maker = getComputingOp(operand);
           return maker && isPart(maker, Part::Forward);
         });
}

/// From the operands, in program order. If `hasUsers`, only where these have
/// the stage at hand: a stage may use a value in its backward pass that an
/// earlier stage of the same rank has made, and whose own backward pass comes
/// later.
static void takeFromOperands(Block &block, bool hasUsers) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<AccumulateOp>(op))
      takeFromOperands(loop.getBody().front(), hasUsers);
    if (!canHaveStage(&op) || op.hasAttr(stageAttrName) || addsOverStages(&op))
      continue;
    if (hasUsers && movesForGradients(&op))
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
        op.getNumOperands() == 0 || isOverPipeline(&op))
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

/// The all_reduce over devices of a rank that is the only use of `add`, if any.
static AllReduceOp getReductionOf(AddOp add) {
  auto reduce = add->hasOneUse() ? dyn_cast<AllReduceOp>(*add->user_begin())
                                 : AllReduceOp();
  bool isPlain = reduce && reduce.getKind() == ReductionKind::Sum &&
                 reduce.getNumOperands() == 1 &&
                 !reduce->hasAttr(stageAttrName);
  return isPlain ? reduce : AllReduceOp();
}

/// Completes the sums over stages in `function` by reductions over `axis`.
static void reduceOverStages(func::FuncOp function, MeshOp mesh,
                             StringAttr axis) {
  Block &block = function.getBody().front();
  for (AddOp add : llvm::to_vector(block.getOps<AddOp>())) {
    if (!addsOverStages(add))
      continue;
    AllReduceOp reduce = getReductionOf(add);
    Value sum = reduce ? reduce.getResult(0) : add.getResult();
    if (llvm::any_of(sum.getUsers(), addsOverStages))
      continue; // part of another sum
    OpBuilder builder(add->getContext());
    Attribute cause = builder.getStringAttr("sum over stages");
    if (!reduce) {
      builder.setInsertionPointAfter(add);
      reduce = builder.create<AllReduceOp>(
          add.getLoc(), TypeRange{add.getType()}, ReductionKind::Sum,
          ValueRange{add}, mesh.getSymName(), builder.getArrayAttr({axis}));
      setPlaceInStep(reduce, add);
      reduce->setAttr(causeAttrName, cause);
      add.getResult().replaceAllUsesExcept(reduce.getResult(0), reduce);
    } else {
      SmallVector<Attribute> axes(reduce.getAxes().getValue());
      axes.push_back(axis);
      llvm::sort(axes, [&](Attribute lhs, Attribute rhs) {
        return mesh.getAxisIndex(cast<StringAttr>(lhs).getValue()) <
               mesh.getAxisIndex(cast<StringAttr>(rhs).getValue());
      });
      reduce.setAxesAttr(builder.getArrayAttr(axes));
      if (auto first = reduce->getAttrOfType<StringAttr>(causeAttrName))
        cause = builder.getStringAttr(first.getValue() + "; sum over stages");
      reduce->setAttr(causeAttrName, cause);
    }
    // The check of the programs of ranks compares the complete sum alone.
    for (StringRef name : {idAttrName, layoutAttrName})
      if (Attribute attr = add->getAttr(name))
        reduce->setAttr(name, attr);
  }
}

namespace {

struct CompleteStagesPass
    : shardc::impl::CompleteStagesPassBase<CompleteStagesPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    auto pipeline =
        getOperation()->getAttrOfType<PipelineAttr>(pipelineAttrName);
    if (!pipeline)
      return;
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Block &block = function.getBody().front();
      takeFromOperands(block, /*hasUsers=*/true);
      reduceOverStages(function, *mesh, pipeline.getAxis());
      takeFromUsers(block);
      // What moves for gradients, and has no user of a stage.
      takeFromOperands(block, /*hasUsers=*/false);
    }
  }
};

} // namespace
