//===- CostTerms.cpp - What a plan costs by its objective -----------------===//

#include "shardc/AutoSharding/CostTerms.h"

using namespace llvm;
using namespace shardc;

namespace {

/// A value as it is made and wanted.
struct Moved {
  std::optional<Layout> made;
  SmallVector<Layout> wanted;
};

class Pricer {
public:
  Pricer(const ShardingGraph &graph, ReshardPlanner &planner,
         const CollectiveCosts &prices)
      : graph(graph), planner(planner), prices(prices),
        madeIn(getPartsMadeIn(graph)) {}

  CostTerms run(int first, int end, const PlanDecisions &decisions) {
    for (int index = first; index < end; ++index)
      addOp(graph.ops[index], decisions.assignments[index], decisions);
    for (const auto &[value, moved] : values)
      addMoves(value, moved);
    price.start = getStartCost(price.starts, prices);
    return std::move(price);
  }

private:
  void addOp(const GraphOp &op, const Assignment &assignment,
             const PlanDecisions &decisions) {
    for (auto [index, value] : llvm::enumerate(op.getTensors())) {
      Layout layout = op.kind == GraphOp::Return
                          ? decisions.layouts[op.results[0]]
                          : getOperandLayout(op.rule, assignment, index);
      Moved &moved = values[value];
      if (!moved.made && !isFree.count(value))
        moved.made = decisions.layouts[value];
      if (!llvm::is_contained(moved.wanted, layout))
        moved.wanted.push_back(layout);
    }
    if (op.kind == GraphOp::Return)
      return;
    price.ops += getSeconds(graph, op, assignment);
    for (auto [index, value] : llvm::enumerate(op.results)) {
      if (op.operands.empty())
        isFree.insert(value);
      else
        values[value].made = getResultLayout(op.rule, assignment, index);
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
    price.wire += prices.getWire(axes, info.repeats * bytes);
    price.starts.insert({part, {getCollectiveKind(step.kind), axes}});
  }

  const ShardingGraph &graph;
  ReshardPlanner &planner;
  const CollectiveCosts &prices;
  std::vector<Part> madeIn;
  std::map<int, Moved> values;
  /// Made from nothing: made again where it is wanted.
  std::set<int> isFree;
  CostTerms price;
};

} // namespace

CostTerms shardc::getCostTerms(const ShardingGraph &graph, int first, int end,
                               const PlanDecisions &decisions,
                               ReshardPlanner &planner,
                               const CollectiveCosts &prices) {
  return Pricer(graph, planner, prices).run(first, end, decisions);
}
