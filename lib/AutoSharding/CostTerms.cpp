//===- CostTerms.cpp - The terms of the cost of a plan --------------------===//

#include "shardc/AutoSharding/CostTerms.h"

using namespace llvm;
using namespace shardc;

namespace {

/// The layout in which a value is made, and those in which it is used.
struct Moved {
  std::optional<Layout> made;
  SmallVector<Layout> wanted;
};

class CostAdder {
public:
  CostAdder(const ShardingGraph &graph, ReshardPlanner &planner,
            const CollectiveCosts &collectiveCosts)
      : graph(graph), planner(planner), collectiveCosts(collectiveCosts),
        madeIn(getPartsMadeIn(graph)) {}

  CostTerms run(int first, int end, const PlanDecisions &decisions) {
    for (int index = first; index < end; ++index)
      addOp(graph.ops[index], decisions.strategies[index], decisions);
    for (const auto &[value, moved] : values)
      addMoves(value, moved);
    terms.latency = getLatencyCost(terms.collectives, collectiveCosts);
    return std::move(terms);
  }

private:
  void addOp(const GraphOp &op, const ShardingStrategy &strategy,
             const PlanDecisions &decisions) {
    for (auto [index, value] : llvm::enumerate(op.getTensors())) {
      Layout layout = op.kind == GraphOp::Return
                          ? decisions.layouts[op.results[0]]
                          : getOperandLayout(op.rule, strategy, index);
      Moved &moved = values[value];
      if (!moved.made && !isFree.count(value))
        moved.made = decisions.layouts[value];
      if (!llvm::is_contained(moved.wanted, layout))
        moved.wanted.push_back(layout);
    }
    if (op.kind == GraphOp::Return)
      return;
    terms.ops += getSeconds(graph, op, strategy);
    terms.wire += getOwnWire(graph, op, strategy, collectiveCosts);
    for (auto [index, value] : llvm::enumerate(op.results)) {
      if (op.operands.empty())
        isFree.insert(value);
      else
        values[value].made = getResultLayout(op.rule, strategy, index);
    }
  }

  void addMoves(int value, const Moved &moved) {
    if (!moved.made)
      return;
    SmallVector<Layout> wanted;
    for (const Layout &layout : moved.wanted)
      if (layout != *moved.made)
        wanted.push_back(layout);
    const GraphValue &info = graph.values[value];
    Part part = madeIn[value];
    SmallVector<Delivery> tree = planner.planTree(
        *moved.made, wanted, info.shape, info.elementBytes, part);
    for (const Delivery &delivery : tree) {
      Layout from =
          delivery.source < 0 ? *moved.made : tree[delivery.source].layout;
      ReshardPlan plan = planner.plan(from, delivery.layout, info.shape,
                                      info.elementBytes, part);
      for (const ReshardStep &step : plan.steps) {
        addStep(step, from, info, part);
        from = step.after;
      }
    }
  }

  void addStep(const ReshardStep &step, const Layout &from,
               const GraphValue &info, Part part) {
    if (step.kind == ReshardStep::Slice)
      return;
    AxisSet axes = 0;
    for (int axis : step.axes)
      axes |= axisBit(axis);
    double bytes =
        getStepBytes(step, from, info.shape, info.elementBytes, graph.mesh)
            .value_or(step.wireBytes);
    terms.wire += collectiveCosts.getWire(axes, info.repeats * bytes);
    terms.collectives.insert({part, {getCollectiveKind(step.kind), axes}});
  }

  const ShardingGraph &graph;
  ReshardPlanner &planner;
  const CollectiveCosts &collectiveCosts;
  std::vector<Part> madeIn;
  std::map<int, Moved> values;
  /// Constants: each use makes its own.
  std::set<int> isFree;
  CostTerms terms;
};

} // namespace

double shardc::getOwnWire(const ShardingGraph &graph, const GraphOp &op,
                          const ShardingStrategy &strategy,
                          const CollectiveCosts &collectiveCosts) {
  double cost = 0;
  for (auto [factor, axes] :
       llvm::zip_equal(op.rule.factors, strategy.factors)) {
    if (!factor.oneEach || axes.empty())
      continue;
    const GraphValue &value = graph.values[op.results[0]];
    int64_t elements = getResultLayout(op.rule, strategy, 0)
                           .getLocalElements(value.shape, graph.mesh);
    AxisSet set = 0;
    for (int axis : axes)
      set |= axisBit(axis);
    cost += collectiveCosts.getWire(
        set,
        static_cast<double>(value.repeats * elements * value.elementBytes));
  }
  return cost;
}

CostTerms shardc::getCostTerms(const ShardingGraph &graph, int first, int end,
                               const PlanDecisions &decisions,
                               ReshardPlanner &planner,
                               const CollectiveCosts &collectiveCosts) {
  return CostAdder(graph, planner, collectiveCosts).run(first, end, decisions);
}
