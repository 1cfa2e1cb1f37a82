//===- Propagate.cpp - Decide the sharding of every op --------------------===//
//
// Runs one of two planners and writes its decisions. The cheapest plan is
// compared with the plan that follows the annotations, by the estimate of the
// report: the search minimises a simpler sum.
//
//===----------------------------------------------------------------------===//

#include "PlanCheapest.h"
#include "WriteDecisions.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/MeshSteps.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Sharding/PartialSums.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

#include "llvm/Support/Format.h"

#include <cmath>

namespace shardc {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The plan that follows the annotations; see Propagation.
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
    // Axes over which an op works on partial sums do not shard it.
    for (AxisList &list : axes)
      llvm::erase_if(list, [&, all = sums.all()](int axis) {
        return !isGap(axis) && (all & axisBit(axis));
      });
    decisions.strategies.push_back({axes, sums});
  }
  return decisions;
}

/// Removes the notes of a search from `module`: another plan is taken.
static void forgetSearch(ModuleOp module) {
  module->removeAttr(secondsPerByteAttrName);
  for (auto function : module.getOps<func::FuncOp>()) {
    function->removeAttr(costAttrName);
    function->removeAttr(startsAttrName);
  }
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

  PropagatePass(const PropagatePassOptions &options, PeakLimit limit,
                PlanEstimator estimator)
      : Base(options), limit(std::move(limit)),
        estimator(std::move(estimator)) {}

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
    if (maxAssignments > 0 && maxStrategies > 0)
      return getOperation().emitError("max-assignments: the former name of "
                                      "max-strategies, which is given, too");
    if (maxAssignments > 0)
      maxStrategies = maxAssignments;
    if (maxStrategies < 0)
      return getOperation().emitError("max-strategies: expected 0 (the "
                                      "defaults) or more, found ")
             << maxStrategies.getValue();
    if (maxBranchOptions < 0)
      return getOperation().emitError("max-branch-options: expected 0 (the "
                                      "default) or more, found ")
             << maxBranchOptions.getValue();
    return success();
  }

  FailureOr<Decisions> decide(ModuleGraph &module) {
    if (partition == "follow")
      return follow(module.graph);
    SearchOptions search;
    search.gap = gap;
    search.usesBeam = maxStrategies == 0;
    if (maxStrategies > 0)
      search.maxWork = maxStrategies;
    if (maxBranchOptions > 0)
      search.maxBranchOptions = maxBranchOptions;
    FailureOr<PlanDecisions> plan = planCheapest(
        module, {objective, machine, regather, maxStrategies, search, limit},
        getAnalysis<MeshSteps>().steps);
    markAnalysesPreserved<MeshSteps>();
    if (failed(plan))
      return failure();
    Decisions decisions{std::move(*plan), {}};
    decisions.origins.resize(module.graph.ops.size());
    return decisions;
  }

  /// Writes `decisions` to `root`, of which `module` is the graph.
  LogicalResult write(ModuleOp root, ModuleGraph &module,
                      const Decisions &decisions, bool isSearched) {
    if (isSearched)
      root->setAttr(partitionAttrName,
                    StringAttr::get(&getContext(), "cheapest"));
    else
      forgetSearch(root);
    return writeDecisions(module, decisions);
  }

  /// The estimate of the report for the train step of a plan.
  llvm::Expected<PlanEstimate> estimate(const Decisions &decisions,
                                        bool isSearched) {
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    {
      ScopedDiagnosticHandler silence(&getContext(),
                                      [](Diagnostic &) { return success(); });
      FailureOr<ModuleGraph> module =
          ModuleGraph::build(*copy, isSearched && regather);
      if (failed(module) ||
          failed(write(*copy, *module, decisions, isSearched)))
        return llvm::createStringError("it cannot be written down");
    }
    return estimator(*copy);
  }

  /// If the plan found is worse by the estimate of the report than `followed`,
  /// which follows the annotations, the estimate of that one; otherwise
  /// nullopt. Remarks on the comparison.
  std::optional<PlanEstimate> getBetter(const Decisions &found,
                                        const Decisions &followed) {
    func::FuncOp step = getStep(getOperation());
    if (!step)
      return std::nullopt;
    llvm::Expected<PlanEstimate> other = estimate(followed, false);
    if (!other) {
      step.emitRemark("the plan found is not compared with the plan that "
                      "follows the annotations, which is refused: ")
          << llvm::toString(other.takeError());
      return std::nullopt;
    }
    llvm::Expected<PlanEstimate> own = estimate(found, true);
    // A later phase says at its place why the plan found is refused.
    if (!own) {
      llvm::consumeError(own.takeError());
      return std::nullopt;
    }
    bool isWorse = own->isWorseThan(*other, objective);
    auto getText = [&](const PlanEstimate &estimate) {
      if (objective == "bytes")
        return "sends " + std::to_string(estimate.wireBytes) + " bytes";
      return "costs " + getCostText("time", estimate.overlappedSeconds) + " (" +
             getCostText("time", estimate.seconds) + " without overlap)";
    };
    step.emitRemark("a step of the plan found ")
        << getText(*own) << "; one of the plan that follows the annotations "
        << getText(*other) << ": the " << (isWorse ? "latter" : "plan found")
        << " is taken";
    if (!isWorse)
      return std::nullopt;
    return *other;
  }

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Import,
                               ModulePhase::Propagate)))
      return signalPassFailure();
    if (failed(checkOptions()))
      return signalPassFailure();
    bool isSearched = partition == "cheapest";
    FailureOr<ModuleGraph> module =
        ModuleGraph::build(getOperation(), isSearched && regather);
    if (failed(module))
      return signalPassFailure();
    FailureOr<Decisions> decisions = decide(*module);
    if (failed(decisions))
      return signalPassFailure();
    std::optional<PlanEstimate> better;
    double lowerBound = 0;
    // Plans of pipelines are not compiled beyond `collectives` yet, so there
    // are no estimates to compare.
    bool hasPipeline = getOperation()->hasAttr(pipelineAttrName);
    if (isSearched && estimator && !hasPipeline) {
      FailureOr<ModuleGraph> plain = ModuleGraph::build(getOperation());
      if (failed(plain))
        return signalPassFailure();
      Decisions followed = follow(plain->graph);
      better = getBetter(*decisions, followed);
      if (better) {
        // The sum minimised by time bounds no estimate.
        if (objective == "bytes")
          lowerBound = getPlanCost(getStep(getOperation()))->atLeast;
        isSearched = false;
        module = std::move(plain);
        decisions = std::move(followed);
      }
    }
    if (failed(write(getOperation(), *module, *decisions, isSearched)))
      return signalPassFailure();
    if (better)
      noteFollowedPlan(getStep(getOperation()), objective, *better, *better,
                       lowerBound);
  }

  PeakLimit limit;
  PlanEstimator estimator;
};

} // namespace

std::unique_ptr<Pass> shardc::createPropagatePass(PropagatePassOptions options,
                                                  PeakLimit limit,
                                                  PlanEstimator estimator) {
  return std::make_unique<PropagatePass>(options, std::move(limit),
                                         std::move(estimator));
}
