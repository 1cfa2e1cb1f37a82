//===- PlanCheapest.cpp - The plan of least cost of a module --------------===//

#include "PlanCheapest.h"

#include "shardc/Analysis/CheapestPlan.h"
#include "shardc/Analysis/CommunicationReport.h"
#include "shardc/Analysis/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

namespace {

class CheapestPlanner {
public:
  CheapestPlanner(ModuleGraph &module, const CollectivePrices &prices,
                  const CheapestOptions &options,
                  std::shared_ptr<LayoutSteps> steps)
      : module(module), graph(module.graph), prices(prices),
        maxAssignments(options.maxAssignments),
        layouts(std::make_shared<LayoutGraphs>(graph.mesh, std::move(steps))) {
    limits.gap = options.gap;
    if (options.maxBranchOptions > 0)
      limits.maxBranchOptions = options.maxBranchOptions;
    if (maxAssignments > 0)
      limits.maxWork = maxAssignments;
    limits.becomesNarrow = maxAssignments == 0;
  }

  FailureOr<PlanDecisions> run() {
    int numAxes = 0;
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
      numAxes += graph.mesh.getSize(axis) > 1;
    if (numAxes > maxSearchedAxes) {
      module.mesh.emitOpError("has ")
          << numAxes << " axes of more than one device; partition=cheapest "
          << "searches meshes of at most " << maxSearchedAxes;
      return failure();
    }
    for (const GraphOp &op : graph.ops)
      decisions.assignments.emplace_back().factors.resize(
          op.rule.factors.size());
    for (ModuleGraph::Function &function : module.functions)
      if (failed(search(function)))
        return failure();
    decisions.layouts = getLayoutsAtRest(graph, atRest);
    return std::move(decisions);
  }

private:
  LogicalResult search(ModuleGraph::Function &function) {
    func::FuncOp op = function.op;
    SearchProblem problem(graph, function.firstOp, function.endOp, prices,
                          atRest, layouts);
    if (maxAssignments > 0 && problem.getNumOptions() > maxAssignments)
      return op.emitOpError("has ") << problem.getNumOptions()
                                    << " ways to shard single ops, more than "
                                    << maxAssignments << " (max-assignments)";
    CheapestPlan plan = findCheapestPlan(problem, prices, limits);
    if (plan.options.empty()) {
      if (plan.lowerBound == unreachable)
        return op.emitOpError("cannot be partitioned: no plan keeps all of its "
                              "annotations");
      return op.emitOpError("is too large for an exact search, which found no "
                            "plan; use --partition=follow");
    }
    if (graph.memoryPrice == 0 && isCutOff(plan))
      op.emitWarning("the search for the cheapest plan was cut off: ")
          << getCostText(getObjective(), plan.cost)
          << " are not proved to be the least, which is at least "
          << getCostText(getObjective(), plan.lowerBound);
    problem.apply(plan.options, decisions.assignments, atRest);
    writeCost(op, plan);
    return success();
  }

  /// Whether the plan may cost more than the least by more than the gap.
  bool isCutOff(const CheapestPlan &plan) const {
    PlanCost cost{getObjective().str(), plan.cost, plan.lowerBound,
                  std::nullopt};
    return !cost.isProved() &&
           (!prices.hasStarts() ||
            plan.lowerBound < plan.cost * (1 - limits.gap) * (1 - 1e-9));
  }

  /// What no plan undercuts, as far as is known: prices of memory say nothing
  /// about plans that need not pay them.
  double getLeast(const CheapestPlan &plan) const {
    if (graph.memoryPrice > 0)
      return 0;
    return std::min(plan.lowerBound, plan.price.getCost());
  }

  StringRef getObjective() const {
    return prices.hasStarts() ? "time" : "bytes";
  }

  void writeCost(func::FuncOp op, const CheapestPlan &plan) {
    Builder builder(op.getContext());
    op->setAttr(
        "shardc.cost",
        CostAttr::get(op.getContext(), builder.getStringAttr(getObjective()),
                      builder.getF64FloatAttr(plan.price.getCost()),
                      builder.getF64FloatAttr(getLeast(plan)), FloatAttr()));
    if (!prices.hasStarts())
      return;
    SmallVector<Attribute> starts;
    for (const CollectiveStart &start : plan.price.starts)
      starts.push_back(
          StartAttr::get(op.getContext(), start.part, start.kind.first,
                         getAxisNames(graph.mesh.getList(start.kind.second),
                                      graph.mesh, op.getContext())));
    op->setAttr("shardc.starts", builder.getArrayAttr(starts));
  }

  ModuleGraph &module;
  const ShardingGraph &graph;
  const CollectivePrices &prices;
  int64_t maxAssignments;
  PlanLimits limits;
  std::shared_ptr<LayoutGraphs> layouts;
  PlanDecisions decisions;
  SearchProblem::AtRest atRest;
};

} // namespace

/// Prices moves and ops by time, and says so in the module.
static FailureOr<CollectivePrices> priceByTime(ModuleGraph &module,
                                               StringRef machine) {
  auto root = module.mesh->getParentOfType<ModuleOp>();
  llvm::Expected<Machine> loaded = loadMachineFor(module.mesh, machine);
  if (!loaded) {
    root.emitError("machine: ") << llvm::toString(loaded.takeError());
    return failure();
  }
  setSeconds(module, *loaded);
  const MeshAxes &mesh = module.graph.mesh;
  CollectivePrices prices(mesh, *loaded);
  Builder builder(root.getContext());
  NamedAttrList rates;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    rates.set(mesh.getName(axis),
              builder.getF64FloatAttr(prices.getSecondsPerByte()[axis]));
  root->setAttr("shardc.seconds_per_byte",
                rates.getDictionary(root.getContext()));
  return prices;
}

FailureOr<PlanDecisions>
shardc::planCheapest(ModuleGraph &module, const CheapestOptions &options,
                     std::shared_ptr<LayoutSteps> steps) {
  FailureOr<CollectivePrices> prices = CollectivePrices();
  if (options.objective == "time")
    prices = priceByTime(module, options.machine);
  if (failed(prices))
    return failure();
  module.graph.memoryPrice = options.memoryPrice;
  return CheapestPlanner(module, *prices, options, std::move(steps)).run();
}
