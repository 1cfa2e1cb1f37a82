//===- InsertReshards.cpp - Make every change of sharding explicit --------===//
//
// Reads the assignments that a planner left and nothing else: an op produces
// its results, and wants its operands, in the layouts that follow from its
// sharding rule and its assignment. Wherever the two ends of an edge differ a
// `shardc.reshard` is put between them, shared by all users that want the same.
// Weights that are gathered again for the backward pass have reshards of their
// own in either pass; `shardc.gathered_for` says so to all that would merge
// them.
//
//===----------------------------------------------------------------------===//

#include "EdgeLayouts.h"
#include "MoveProvenance.h"
#include "Regather.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/MeshSteps.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Reshard/ReshardPlanner.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

class Inserter {
public:
  Inserter(func::FuncOp function, MeshOp meshOp, ReshardPlanner &planner,
           bool gathersAgain)
      : function(function), mesh(getMeshAxes(meshOp)), planner(planner),
        regather(mesh, planner, gathersAgain),
        meshName(FlatSymbolRefAttr::get(meshOp.getSymNameAttr())),
        causes(function, mesh), moves(function, mesh, meshName, causes),
        edges(function, mesh) {}

  LogicalResult run() {
    if (failed(edges.collect()))
      return failure();
    SmallVector<Value> values;
    for (Block *block : getBlocks(function)) {
      llvm::append_range(values, block->getArguments());
      for (Operation &op : *block)
        values.append(op.result_begin(), op.result_end());
    }
    for (Value value : values)
      deliver(value);
    if (RegatherAttr price = regather.getPrice(function.getContext()))
      function->setAttr(regatherAttrName, price);
    // Only now: where moves came from is remembered by op.
    for (Operation *op : unused)
      op->erase();
    function.walk([](ShardingConstraintOp constraint) {
      constraint.replaceAllUsesWith(constraint.getOperand());
      constraint.erase();
    });
    return success();
  }

private:
  void deliver(Value value) {
    const Layout &from = edges.getProduced(value);
    SmallVector<Want, 1> list;
    for (const Want &want : edges.getWants(value))
      if (want.layout != from)
        list.push_back(want);
    if (list.empty())
      return;
    if (Operation *op = value.getDefiningOp();
        op && op->getNumOperands() == 0 && succeeded(repeat(op, list)))
      return;
    for (const WantGroup &group : regather.group(value, from, list))
      insert(value, from, group);
  }

  /// Values made from nothing are made again in each layout, unless they could
  /// only be cut from the whole.
  LogicalResult repeat(Operation *op, ArrayRef<Want> list) {
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    for (const Factor &factor : rule.factors)
      if (factor.kind == FactorKind::Whole)
        return failure();
    if (rule.needsBlocks &&
        llvm::any_of(list, [](const Want &w) { return w.layout.isStrided(); }))
      return failure();
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (const Want &want : list) {
      Operation *copy = builder.clone(*op);
      ShardingAttr sharding = getSharding(want.layout, mesh, meshName);
      copy->setAttr(assignmentAttrName,
                    AssignmentAttr::get(op->getContext(), sharding.getDims(),
                                        ArrayRef<StringAttr>(),
                                        ArrayRef<StringAttr>()));
      for (OpOperand *use : want.uses)
        use->set(copy->getResult(0));
    }
    if (op->use_empty())
      unused.push_back(op);
    return success();
  }

  void insert(Value value, const Layout &from, const WantGroup &group) {
    ArrayRef<Want> list = group.wants;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<Layout> layouts;
    for (const Want &want : list)
      layouts.push_back(want.layout);
    Part madeIn = group.isSecond && isa<BlockArgument>(value)
                      ? getFirstPart(list)
                      : getPartMadeIn(value);
    SmallVector<Delivery> tree =
        planner.planTree(from, layouts, type.getShape(),
                         getElementBytes(type.getElementType()), madeIn);
    // Each layout is made before the first use of it or of what is made of it;
    // what a loop uses is made once, before the loop, or in it if the group
    // says so.
    SmallVector<OpOperand *> uses(tree.size(), nullptr);
    for (auto [want, use] : llvm::zip(list, uses))
      use = want.uses.front();
    for (size_t round = 0; round < tree.size(); ++round)
      for (auto [delivery, use] : llvm::zip_equal(tree, uses))
        if (delivery.source >= 0 && use &&
            (!uses[delivery.source] ||
             edges.isBefore(use->getOwner(),
                            uses[delivery.source]->getOwner())))
          uses[delivery.source] = use;

    SmallVector<Value> made(tree.size());
    for (size_t done = 0; done < tree.size();)
      for (auto [index, delivery] : llvm::enumerate(tree)) {
        int source = delivery.source;
        if (made[index] || (source >= 0 && !made[source]))
          continue;
        made[index] = create(source < 0 ? value : made[source], value,
                             source < 0 ? from : tree[source].layout,
                             delivery.layout, *uses[index], group);
        if (function->hasAttr(startsAttrName))
          made[index].getDefiningOp()->setAttr(
              madeInAttrName, PartAttr::get(function.getContext(), madeIn));
        ++done;
      }
    for (auto [want, result] : llvm::zip(list, made))
      for (OpOperand *use : want.uses)
        use->set(result);
  }

  /// The part of the step that has the first of `list`.
  Part getFirstPart(ArrayRef<Want> list) const {
    Operation *first = nullptr;
    for (const Want &want : list)
      for (OpOperand *use : want.uses)
        if (!first || edges.isBefore(use->getOwner(), first))
          first = use->getOwner();
    auto part = first->getAttrOfType<PartAttr>(partAttrName);
    return part ? part.getValue() : Part::Update;
  }

  /// The reshard of `operand`, made of `origin`, on its way to `use`.
  Value create(Value operand, Value origin, const Layout &from,
               const Layout &to, OpOperand &use, const WantGroup &group) {
    Operation *producer = getComputingOp(operand);
    bool reduces = from.unreduced & ~to.unreduced;
    // A reduction belongs to the op that left partial sums, and starts there.
    Operation *owner = use.getOwner();
    if (producer && (reduces || isa<func::ReturnOp>(owner)))
      owner = producer;
    OpBuilder builder(group.loop ? use.getOwner()
                                 : getUserInBlock(operand, use.getOwner()));
    if (reduces)
      builder.setInsertionPointAfterValue(operand);
    auto reshard = builder.create<ReshardOp>(
        moves.record(owner->getLoc(), origin, from, to, use), operand.getType(),
        operand, getSharding(from, mesh, meshName),
        getSharding(to, mesh, meshName),
        builder.getStringAttr(
            causes.explain(origin, from, to, use) +
            (group.isSecond ? ", again for the backward pass" : "")));
    auto part = owner->getAttrOfType<PartAttr>(partAttrName);
    reshard->setAttr(partAttrName,
                     part ? part
                          : PartAttr::get(builder.getContext(), Part::Forward));
    if (from.reduction == ReductionKind::Max)
      reshard->setAttr(
          reductionAttrName,
          ReductionKindAttr::get(builder.getContext(), ReductionKind::Max));
    if (group.pass)
      reshard->setAttr(gatheredForAttrName,
                       PartAttr::get(builder.getContext(), *group.pass));
    return reshard;
  }

  func::FuncOp function;
  MeshAxes mesh;
  ReshardPlanner &planner;
  Regather regather;
  FlatSymbolRefAttr meshName;
  ReshardCauses causes;
  MoveProvenance moves;
  EdgeLayouts edges;
  SmallVector<Operation *> unused;
};

struct InsertReshardsPass
    : shardc::impl::InsertReshardsPassBase<InsertReshardsPass> {
  using Base = shardc::impl::InsertReshardsPassBase<InsertReshardsPass>;
  using Base::Base;

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Propagate,
                               ModulePhase::Propagate)))
      return signalPassFailure();
    FailureOr<MeshOp> mesh = getMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    MeshAxes axes = getMeshAxes(*mesh);
    auto layouts =
        std::make_shared<LayoutGraphs>(axes, getAnalysis<MeshSteps>().steps);
    markAnalysesPreserved<MeshSteps>();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      ReshardPlanner planner(axes, usesAllAxes(getOperation()),
                             getPartPrices(function, axes), layouts);
      if (!function.isExternal() &&
          failed(Inserter(function, *mesh, planner, regather).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
