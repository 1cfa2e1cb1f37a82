//===- PlanCheapest.cpp - The plan of least cost of a module --------------===//

#include "PlanCheapest.h"

#include "ObjectiveCosts.h"
#include "TrialPlan.h"

#include "shardc/AutoSharding/MemoryConstrainedSearch.h"
#include "shardc/Report/CommunicationReport.h"

using namespace mlir;
using namespace shardc;

namespace {

class CheapestPlanner {
public:
  CheapestPlanner(ModuleGraph &module, const CollectiveCosts &prices,
                  const CheapestOptions &options,
                  std::shared_ptr<LayoutSteps> steps)
      : module(module), graph(module.graph), prices(prices), options(options),
        steps(steps),
        layouts(std::make_shared<LayoutGraphs>(graph.mesh, std::move(steps))) {
    limits.gap = options.gap;
    if (options.maxBranchOptions > 0)
      limits.maxBranchOptions = options.maxBranchOptions;
    if (options.maxAssignments > 0)
      limits.maxWork = options.maxAssignments;
    limits.becomesNarrow = options.maxAssignments == 0;
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
    Decided decided = getNothingDecided();
    for (auto [number, function] : llvm::enumerate(module.functions)) {
      const MemoryConstrainedSearch *found = find(number, decided);
      if (!found)
        return failure();
      if (found->plan.options.empty()) {
        refuse(*found);
        return failure();
      }
      if (!found->isLimited && isCutOff(found->plan))
        function.op.emitWarning("the search for the cheapest plan was cut off")
            << getProofText(getPlanCost(found->plan)) << " by objective "
            << getObjective();
      writeCost(function.op, found->plan, prices, graph.mesh,
                found->isLimited ? options.limit.bytes : 0);
      decide(number, found->plan, decided);
    }
    return getDecisions(decided);
  }

  /// What a device needs for the plan that costs least if memory has a price;
  /// nullopt if that is not known.
  std::optional<int64_t> getPeakAtPrice(double memoryPrice) {
    Decided decided = getNothingDecided();
    SearchProblem priced = makeProblem(0, decided, memoryPrice);
    CheapestPlan plan = findCheapestPlan(priced, prices, limits);
    if (plan.options.empty())
      return std::nullopt;
    std::optional<PlanPeak> peak = getPeak(0, plan, decided);
    return peak ? std::optional(peak->bytes) : std::nullopt;
  }

private:
  /// What is decided when some functions have been planned.
  struct Decided {
    std::vector<Assignment> assignments;
    SearchProblem::AtRest atRest;
    std::vector<CheapestPlan> plans;
  };

  /// The search for the plan of one function.
  struct Planned {
    SearchProblem problem;
    std::optional<CheapestPlan> cheapest = {};
    std::optional<MemoryConstrainedSearch> fitting = {};
  };

  Decided getNothingDecided() const {
    Decided decided;
    for (const GraphOp &op : graph.ops)
      decided.assignments.emplace_back().factors.resize(op.rule.factors.size());
    return decided;
  }

  PlanDecisions getDecisions(const Decided &decided) const {
    return {decided.assignments, getLayoutsAtRest(graph, decided.atRest)};
  }

  SearchProblem makeProblem(int number, const Decided &decided,
                            double memoryPrice = 0) const {
    const ModuleGraph::Function &function = module.functions[number];
    return SearchProblem(graph, function.firstOp, function.endOp, prices,
                         decided.atRest, layouts, memoryPrice);
  }

  /// What was found for function `number`, which depends on where the arguments
  /// of earlier ones rest; null and an error if it is too large.
  Planned *getPlanned(int number, const Decided &decided) {
    auto it = planned.find({number, decided.atRest});
    if (it == planned.end())
      it = planned
               .try_emplace({number, decided.atRest},
                            Planned{makeProblem(number, decided)})
               .first;
    int64_t numOptions = it->second.problem.getNumOptions();
    if (options.maxAssignments == 0 || numOptions <= options.maxAssignments)
      return &it->second;
    module.functions[number].op.emitOpError("has ")
        << numOptions << " ways to shard single ops, more than "
        << options.maxAssignments << " (max-assignments)";
    return nullptr;
  }

  /// The cheapest plan of function `number`; null and an error if there is
  /// none.
  const CheapestPlan *getCheapest(int number, const Decided &decided) {
    Planned *search = getPlanned(number, decided);
    if (!search)
      return nullptr;
    if (!search->cheapest)
      search->cheapest = findCheapestPlan(search->problem, prices, limits);
    if (!search->cheapest->options.empty())
      return &*search->cheapest;
    func::FuncOp op = module.functions[number].op;
    if (search->cheapest->lowerBound == unreachable)
      op.emitOpError("cannot be partitioned: no plan keeps all of its "
                     "annotations");
    else
      op.emitOpError("is too large for an exact search, which found no plan; "
                     "use --partition=follow");
    return nullptr;
  }

  /// The cheapest plan of function `number` that fits, if memory is limited;
  /// null and an error if that cannot be found out.
  const MemoryConstrainedSearch *find(int number, const Decided &decided) {
    Planned *search = getPlanned(number, decided);
    if (!search)
      return nullptr;
    if (search->fitting)
      return &*search->fitting;
    const CheapestPlan *cheapest = getCheapest(number, decided);
    if (!cheapest)
      return nullptr;
    if (options.limit.bytes == 0) {
      search->fitting.emplace().plan = *cheapest;
      return &*search->fitting;
    }
    search->fitting = findPlanThatFits(
        search->problem, *cheapest,
        [&](double price) { return makeProblem(number, decided, price); },
        prices, limits, options.limit.bytes,
        [&](const CheapestPlan &plan) {
          return getPeak(number, plan, decided);
        });
    return search->fitting->isFailed ? nullptr : &*search->fitting;
  }

  void decide(int number, const CheapestPlan &plan, Decided &decided) {
    getPlanned(number, decided)
        ->problem.apply(plan.options, decided.assignments, decided.atRest);
    decided.plans.push_back(plan);
  }

  /// What a device needs if function `number` runs as `plan` says and later
  /// ones as their cheapest plan that fits, or else that needs least.
  std::optional<PlanPeak> getPeak(int number, const CheapestPlan &plan,
                                  const Decided &decided) {
    Decided next = decided;
    decide(number, plan, next);
    // Most plans of later functions fit.
    Decided all = next;
    for (size_t later = number + 1; later < module.functions.size(); ++later) {
      const CheapestPlan *cheapest = getCheapest(later, all);
      if (!cheapest)
        return std::nullopt;
      decide(later, *cheapest, all);
    }
    llvm::Expected<std::vector<int64_t>> peaks =
        tryPlan(module, getDecisions(all), all.plans, prices, options.regathers,
                options.limit);
    if (!peaks) {
      getRoot().emitError("what memory a plan needs is not known: ")
          << llvm::toString(peaks.takeError());
      return std::nullopt;
    }
    int64_t most = *llvm::max_element(*peaks);
    if (!cheapestPeak)
      cheapestPeak = most;
    int64_t peak = (*peaks)[number];
    // Arguments of all functions are there in each: those that only later ones
    // have might rest in less.
    bool restsMore = llvm::any_of(all.atRest, [&](const auto &value) {
      return graph.values[value.first].isAtRest &&
             !next.atRest.count(value.first);
    });
    bool isLast = number + 1 == static_cast<int>(module.functions.size());
    if (most <= options.limit.bytes || peak > options.limit.bytes || isLast)
      return PlanPeak{most, restsMore};
    const MemoryConstrainedSearch *later = find(number + 1, next);
    if (!later)
      return std::nullopt;
    if (!later->plan.options.empty())
      return PlanPeak{std::max(peak, later->peak)};
    return PlanPeak{later->leastPeak, later->plan.lowerBound < unreachable};
  }

  /// Says that no plan tried fits, and whether one would if weights, which may
  /// be what takes the memory, were gathered again.
  void refuse(const MemoryConstrainedSearch &found) {
    std::optional<int64_t> again = getPeakIfRegathered(found.memoryPrice);
    auto diagnostic = getRoot().emitError("a device has ")
                      << options.limit.bytes
                      << " bytes of memory (--device-memory); of the plans "
                      << "tried none needs less than " << found.leastPeak
                      << ", the cheapest " << *cheapestPeak;
    if (again && *again < found.leastPeak)
      diagnostic << "; with --regather one needs " << *again;
  }

  std::optional<int64_t> getPeakIfRegathered(double memoryPrice) {
    if (options.regathers)
      return std::nullopt;
    ScopedDiagnosticHandler silence(getRoot().getContext(),
                                    [](Diagnostic &) { return success(); });
    FailureOr<ModuleGraph> other = ModuleGraph::build(getRoot(), true);
    if (failed(other))
      return std::nullopt;
    CheapestOptions regathering = options;
    regathering.regathers = true;
    FailureOr<CollectiveCosts> prices =
        getObjectivePrices(*other, options.objective, options.machine);
    if (failed(prices))
      return std::nullopt;
    return CheapestPlanner(*other, *prices, regathering, steps)
        .getPeakAtPrice(memoryPrice);
  }

  PlanCost getPlanCost(const CheapestPlan &plan) const {
    return {getObjective().str(), plan.cost, plan.lowerBound, std::nullopt};
  }

  /// Whether the plan may cost more than the least by more than the gap.
  bool isCutOff(const CheapestPlan &plan) const {
    return !getPlanCost(plan).isProved() &&
           (!prices.hasStarts() ||
            plan.lowerBound < plan.cost * (1 - limits.gap) * (1 - 1e-9));
  }

  StringRef getObjective() const {
    return prices.hasStarts() ? "time" : "bytes";
  }

  ModuleOp getRoot() const {
    MeshOp mesh = module.mesh;
    return mesh->getParentOfType<ModuleOp>();
  }

  ModuleGraph &module;
  const ShardingGraph &graph;
  const CollectiveCosts &prices;
  const CheapestOptions &options;
  PlanLimits limits;
  std::shared_ptr<LayoutSteps> steps;
  std::shared_ptr<LayoutGraphs> layouts;
  std::map<std::pair<int, SearchProblem::AtRest>, Planned> planned;
  /// What the first plan tried needs: the cheapest of all functions.
  std::optional<int64_t> cheapestPeak;
};

} // namespace

FailureOr<PlanDecisions>
shardc::planCheapest(ModuleGraph &module, const CheapestOptions &options,
                     std::shared_ptr<LayoutSteps> steps) {
  FailureOr<CollectiveCosts> prices =
      getObjectivePrices(module, options.objective, options.machine);
  if (failed(prices))
    return failure();
  return CheapestPlanner(module, *prices, options, std::move(steps)).run();
}
