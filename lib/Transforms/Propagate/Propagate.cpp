//===- Propagate.cpp - Decide how every op is sharded ---------------------===//
//
// Lets one of two planners decide, and writes down what it decided.
//
//===----------------------------------------------------------------------===//

#include "PlanCheapest.h"
#include "WriteDecisions.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/MeshSteps.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Sharding/PartialSums.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/Support/Format.h"

#include <cmath>

namespace shardc {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "shardc/Transforms/Passes.h.inc"
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

/// `value` as a user would write it: "-1", "inf".
static std::string getText(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", value);
  return text;
}

namespace {

struct PropagatePass : shardc::impl::PropagatePassBase<PropagatePass> {
  using Base = shardc::impl::PropagatePassBase<PropagatePass>;
  using Base::Base;

  PropagatePass(PropagatePassOptions options, PeakLimit limit)
      : Base(std::move(options)), limit(std::move(limit)) {}

  LogicalResult checkOptions() {
    if (partition != "follow" && partition != "cheapest")
      return getOperation().emitError("unknown partition '")
             << partition << "', expected follow or cheapest";
    if (objective != "time" && objective != "bytes")
      return getOperation().emitError("unknown objective '")
             << objective << "', expected time or bytes";
    if (!(gap >= 0 && gap < 1))
      return getOperation().emitError("gap: expected a number of at least 0 "
                                      "and less than 1, found ")
             << getText(gap);
    if (maxAssignments < 0)
      return getOperation().emitError("max-assignments: expected 0 (the "
                                      "defaults) or more, found ")
             << maxAssignments.getValue();
    if (maxBranchOptions < 0)
      return getOperation().emitError("max-branch-options: expected 0 (the "
                                      "default) or more, found ")
             << maxBranchOptions.getValue();
    return success();
  }

  FailureOr<Decisions> decide(ModuleGraph &module) {
    if (partition == "follow")
      return follow(module.graph);
    FailureOr<PlanDecisions> plan =
        planCheapest(module,
                     {objective, machine, regather, gap, maxAssignments,
                      maxBranchOptions, limit},
                     getAnalysis<MeshSteps>().steps);
    markAnalysesPreserved<MeshSteps>();
    if (failed(plan))
      return failure();
    Decisions decisions{std::move(*plan), {}};
    decisions.origins.resize(module.graph.ops.size());
    return decisions;
  }

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Import,
                               ModulePhase::Propagate)))
      return signalPassFailure();
    if (failed(checkOptions()))
      return signalPassFailure();
    FailureOr<ModuleGraph> module =
        ModuleGraph::build(getOperation(), regather && partition == "cheapest");
    if (failed(module))
      return signalPassFailure();
    FailureOr<Decisions> decisions = decide(*module);
    if (failed(decisions) || failed(writeDecisions(*module, *decisions)))
      return signalPassFailure();
    if (partition != "follow")
      getOperation()->setAttr(partitionAttrName,
                              StringAttr::get(&getContext(), partition));
  }

  PeakLimit limit;
};

} // namespace

std::unique_ptr<Pass> shardc::createPropagatePass(PropagatePassOptions options,
                                                  PeakLimit limit) {
  return std::make_unique<PropagatePass>(std::move(options), std::move(limit));
}
