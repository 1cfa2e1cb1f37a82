//===- InsertReshards.cpp - Explicit changes of sharding ------------------===//
//
// Inserts a `shardc.reshard` on every edge whose two ends have different
// layouts. The sharding rule of an op and its strategy give the layouts of
// its operands and results (EdgeLayouts.h). The reshards of a value form a
// multicast tree (a Steiner tree in the layout graph, ReshardPlanner.h) that
// all of its uses share.
//
// With rematerialised all-gathers (Regather.h) each pass has reshards of its
// own; `shardc.gathered_for` keeps later passes from merging them.
//
//===----------------------------------------------------------------------===//

#include "EdgeLayouts.h"
#include "MoveProvenance.h"
#include "Regather.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/MeshSteps.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Reshard/ReshardPlanner.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-insert-reshards"

namespace shardc {
#define GEN_PASS_DEF_INSERTRESHARDSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Inserts the reshards of one function.
class Inserter {
public:
  Inserter(func::FuncOp function, MeshOp meshOp, ReshardPlanner &planner,
           bool rematerialises)
      : function(function), mesh(getMeshAxes(meshOp)), planner(planner),
        regather(mesh, planner, rematerialises),
        meshName(FlatSymbolRefAttr::get(meshOp.getSymNameAttr())),
        causes(function, mesh), moves(function, mesh, meshName, causes),
        edges(function, mesh) {}

  LogicalResult run() {
    if (failed(edges.collect()))
      return failure();
    recordTransfers();
    SmallVector<Value> values;
    for (Block *block : getBlocks(function)) {
      llvm::append_range(values, block->getArguments());
      for (Operation &op : *block)
        values.append(op.result_begin(), op.result_end());
    }
    for (Value value : values)
      reshard(value);
    if (RegatherAttr cost = regather.getCost(function.getContext()))
      function->setAttr(regatherAttrName, cost);
    // Not earlier: `moves` has maps from ops.
    for (Operation *op : unused)
      op->erase();
    function.walk([](ShardingConstraintOp constraint) {
      constraint.replaceAllUsesWith(constraint.getOperand());
      constraint.erase();
    });
    return success();
  }

private:
  /// Gives transfers the provenance that reshards have. Before any of these:
  /// the consumer is an op of the program.
  void recordTransfers() {
    function.walk([&](TransferOp transfer) {
      if (transfer->use_empty())
        return;
      const Layout &layout = edges.getProduced(transfer.getResult());
      OpOperand &use = **llvm::min_element(
          llvm::make_pointer_range(transfer->getUses()),
          [&](OpOperand *lhs, OpOperand *rhs) {
            return edges.isBefore(lhs->getOwner(), rhs->getOwner());
          });
      transfer->setLoc(moves.record(transfer.getLoc(), transfer.getOperand(),
                                    layout, layout, use));
    });
  }

  /// Gives all uses of `value` the layouts that they need.
  void reshard(Value value) {
    const Layout &from = edges.getProduced(value);
    SmallVector<Consumer, 1> consumers;
    for (const Consumer &consumer : edges.getConsumers(value))
      if (consumer.layout != from)
        consumers.push_back(consumer);
    if (consumers.empty())
      return;
    if (Operation *op = value.getDefiningOp();
        op && op->getNumOperands() == 0 &&
        succeeded(cloneForLayouts(op, consumers)))
      return;
    for (const ConsumerGroup &group : regather.group(value, from, consumers))
      insert(value, from, group);
  }

  /// Clones an op without operands once per layout, in place of reshards. Fails
  /// if the op cannot produce a shard without the whole tensor.
  LogicalResult cloneForLayouts(Operation *op, ArrayRef<Consumer> consumers) {
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    for (const Factor &factor : rule.factors)
      if (factor.kind == FactorKind::Whole)
        return failure();
    if (rule.needsBlocks && llvm::any_of(consumers, [](const Consumer &c) {
          return c.layout.isStrided();
        }))
      return failure();
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (const Consumer &consumer : consumers) {
      LLVM_DEBUG(llvm::dbgs() << "clone " << describeOp(op) << " as "
                              << toString(consumer.layout, mesh) << '\n');
      Operation *copy = builder.clone(*op);
      ShardingAttr sharding = getSharding(consumer.layout, mesh, meshName);
      setStrategyAttr(copy,
                      StrategyAttr::get(op->getContext(), sharding.getDims(),
                                        ArrayRef<StringAttr>(),
                                        ArrayRef<StringAttr>()));
      for (OpOperand *use : consumer.uses)
        use->set(copy->getResult(0));
    }
    if (op->use_empty())
      unused.push_back(op);
    return success();
  }

  /// Inserts the multicast tree of one group of uses.
  void insert(Value value, const Layout &from, const ConsumerGroup &group) {
    ArrayRef<Consumer> consumers = group.consumers;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<Layout> layouts;
    for (const Consumer &consumer : consumers)
      layouts.push_back(consumer.layout);
    Part madeIn = group.isRematerialised && isa<BlockArgument>(value)
                      ? getFirstPart(consumers)
                      : getPartMadeIn(value);
    SmallVector<Delivery> tree =
        planner.planTree(from, layouts, type.getShape(),
                         getElementBytes(type.getElementType()), madeIn);
    // Find for each node of the tree the first use of it or of a node below it,
    // before which the reshard will stand.
    SmallVector<OpOperand *> uses(tree.size(), nullptr);
    for (auto [consumer, use] : llvm::zip(consumers, uses))
      use = consumer.uses.front();
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
    for (auto [consumer, result] : llvm::zip(consumers, made))
      for (OpOperand *use : consumer.uses)
        use->set(result);
  }

  /// The part of the step of the first use in `consumers`.
  Part getFirstPart(ArrayRef<Consumer> consumers) const {
    Operation *first = nullptr;
    for (const Consumer &consumer : consumers)
      for (OpOperand *use : consumer.uses)
        if (!first || edges.isBefore(use->getOwner(), first))
          first = use->getOwner();
    auto part = first->getAttrOfType<PartAttr>(partAttrName);
    return part ? part.getValue() : Part::Update;
  }

  /// Builds a reshard of `operand`, a layout of `origin`, for `use`. It stands
  /// behind its operand if it reduces partial sums. Otherwise it stands before
  /// the use, and before the loop around it unless the group is inside.
  Value create(Value operand, Value origin, const Layout &from,
               const Layout &to, OpOperand &use, const ConsumerGroup &group) {
    Operation *producer = getComputingOp(operand);
    bool reduces = from.unreduced & ~to.unreduced;
    // A reduction belongs to the op that produced the partial sums.
    Operation *owner = use.getOwner();
    if (producer && (reduces || isa<func::ReturnOp>(owner)))
      owner = producer;
    OpBuilder builder(group.loop ? use.getOwner()
                                 : getUserInBlock(operand, use.getOwner()));
    if (reduces)
      builder.setInsertionPointAfterValue(operand);
    LLVM_DEBUG(llvm::dbgs() << "reshard " << toString(from, mesh) << " to "
                            << toString(to, mesh) << ": "
                            << causes.explain(origin, from, to, use) << '\n');
    auto reshard = builder.create<ReshardOp>(
        moves.record(owner->getLoc(), origin, from, to, use), operand.getType(),
        operand, getSharding(from, mesh, meshName),
        getSharding(to, mesh, meshName),
        builder.getStringAttr(
            causes.explain(origin, from, to, use) +
            (group.isRematerialised ? ", again for the backward pass" : "")));
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
                             getCostsByPart(function, axes), layouts);
      if (!function.isExternal() &&
          failed(Inserter(function, *mesh, planner, regather).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
