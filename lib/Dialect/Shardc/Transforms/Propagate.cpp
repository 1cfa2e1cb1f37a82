//===- Propagate.cpp - Decide how every op is sharded ---------------------===//
//
// Lets one of two planners decide, and writes down what it decided.
//
//===----------------------------------------------------------------------===//

#include "PlanCheapest.h"
#include "WriteDecisions.h"

#include "shardc/Analysis/PartialSums.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The annotations flow; see Propagation.
static Decisions follow(const ShardingGraph &graph) {
  Propagation propagation(graph);
  propagation.run();
  Decisions decisions;
  std::vector<FactorAxes> factors;
  for (size_t op = 0; op < graph.ops.size(); ++op) {
    factors.push_back(propagation.getFactors(op));
    decisions.origins.push_back(propagation.getOrigins(op));
  }
  for (size_t value = 0; value < graph.values.size(); ++value)
    decisions.layouts.push_back(propagation.getLayout(value));
  std::vector<PartialAxes> partial =
      findPartialSums(graph, factors, decisions.layouts);
  for (auto [axes, sums] : llvm::zip_equal(factors, partial)) {
    // What an op works on as partial sums does not shard it.
    for (AxisList &list : axes)
      llvm::erase_if(list, [&, all = sums.all()](int axis) {
        return !isGap(axis) && (all & axisBit(axis));
      });
    decisions.assignments.push_back({axes, sums});
  }
  return decisions;
}

namespace {

struct PropagatePass : shardc::impl::PropagatePassBase<PropagatePass> {
  using Base = shardc::impl::PropagatePassBase<PropagatePass>;
  using Base::Base;

  FailureOr<Decisions> decide(ModuleGraph &module) {
    if (partition == "follow")
      return follow(module.graph);
    if (partition != "cheapest") {
      getOperation().emitError("unknown partition '")
          << partition << "', expected follow or cheapest";
      return failure();
    }
    if (objective != "time" && objective != "bytes") {
      getOperation().emitError("unknown objective '")
          << objective << "', expected time or bytes";
      return failure();
    }
    FailureOr<PlanDecisions> plan =
        planCheapest(module, {objective, machine, memoryPrice, maxAssignments,
                              maxBranchOptions});
    if (failed(plan))
      return failure();
    Decisions decisions{std::move(*plan), {}};
    decisions.origins.resize(module.graph.ops.size());
    return decisions;
  }

  void runOnOperation() override {
    FailureOr<ModuleGraph> module = ModuleGraph::build(getOperation());
    if (failed(module))
      return signalPassFailure();
    FailureOr<Decisions> decisions = decide(*module);
    if (failed(decisions) || failed(writeDecisions(*module, *decisions)))
      return signalPassFailure();
    if (partition != "follow")
      getOperation()->setAttr("shardc.partition",
                              StringAttr::get(&getContext(), partition));
  }
};

} // namespace
