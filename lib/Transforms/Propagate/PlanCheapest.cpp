//===- PlanCheapest.cpp - The cheapest plan of a module -------------------===//

#include "PlanCheapest.h"

#include "ObjectiveCosts.h"
#include "TrialPlan.h"

#include "shardc/AutoSharding/MemoryConstrainedSearch.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Transforms/EmitMemoryError.h"

using namespace mlir;
using namespace shardc;

namespace {

class CheapestPlanner {
public:
  CheapestPlanner(ModuleGraph &module, const CollectiveCosts &collectiveCosts,
                  const CheapestOptions &options,
                  std::shared_ptr<LayoutSteps> steps)
      : module(module), graph(module.graph), collectiveCosts(collectiveCosts),
        options(options), steps(steps),
        layouts(std::make_shared<LayoutGraphs>(graph.mesh, std::move(steps))) {}

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
      if (found->plan.strategies.empty()) {
        refuse(*found);
        return failure();
      }
      if (!found->isLimited && isCutOff(found->plan))
        function.op.emitWarning("the search for the cheapest plan was cut off")
            << getProofText(getPlanCost(found->plan)) << " by objective "
            << getObjective();
      writeCost(function.op, found->plan, collectiveCosts, graph.mesh,
                found->isLimited ? options.limit.bytes : 0);
      decide(number, found->plan, decided);
    }
    return getDecisions(decided);
  }

  /// The memory of a device with the cheapest plan at a price of memory;
  /// nullopt if it is not known.
  std::optional<int64_t> getPeakAtMemoryPrice(double memoryPrice) {
    Decided decided = getNothingDecided();
    SearchProblem priced = makeProblem(0, decided, memoryPrice);
    CheapestPlan plan =
        findCheapestPlan(priced, collectiveCosts, options.search);
    if (plan.strategies.empty())
      return std::nullopt;
    std::optional<PlanPeak> peak = getPeak(0, plan, decided);
    return peak ? std::optional(peak->bytes) : std::nullopt;
  }

private:
  /// The decisions after some functions have been planned.
  struct Decided {
    std::vector<ShardingStrategy> strategies;
    SearchProblem::StorageLayouts stored;
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
      decided.strategies.emplace_back().factors.resize(op.rule.factors.size());
    return decided;
  }

  PlanDecisions getDecisions(const Decided &decided) const {
    return {decided.strategies, getStorageLayouts(graph, decided.stored)};
  }

  SearchProblem makeProblem(int number, const Decided &decided,
                            double memoryPrice = 0) const {
    const ModuleGraph::Function &function = module.functions[number];
    return SearchProblem(graph, function.firstOp, function.endOp,
                         collectiveCosts, decided.stored, layouts, memoryPrice);
  }

  /// The search of function `number`, which depends on the storage layouts of
  /// earlier arguments; null and an error if it is too large.
  Planned *getPlanned(int number, const Decided &decided) {
    auto it = planned.find({number, decided.stored});
    if (it == planned.end())
      it = planned
               .try_emplace({number, decided.stored},
                            Planned{makeProblem(number, decided)})
               .first;
    int64_t numStrategies = it->second.problem.getNumStrategies();
    if (options.maxStrategies == 0 || numStrategies <= options.maxStrategies)
      return &it->second;
    module.functions[number].op.emitOpError("has ")
        << numStrategies << " ways to shard single ops, more than "
        << options.maxStrategies << " (max-strategies)";
    return nullptr;
  }

  /// The cheapest plan of function `number`; null and an error if there is
  /// none.
  const CheapestPlan *getCheapest(int number, const Decided &decided) {
    Planned *search = getPlanned(number, decided);
    if (!search)
      return nullptr;
    if (!search->cheapest)
      search->cheapest =
          findCheapestPlan(search->problem, collectiveCosts, options.search);
    if (!search->cheapest->strategies.empty())
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

  /// The cheapest plan of function `number` that fits; null and an error if
  /// measuring memory failed.
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
        collectiveCosts, options.search, options.limit.bytes,
        [&](const CheapestPlan &plan) {
          return getPeak(number, plan, decided);
        });
    return search->fitting->isFailed ? nullptr : &*search->fitting;
  }

  void decide(int number, const CheapestPlan &plan, Decided &decided) {
    getPlanned(number, decided)
        ->problem.apply(plan.strategies, decided.strategies, decided.stored);
    decided.plans.push_back(plan);
  }

  /// The memory of a device if function `number` runs as `plan`, and each later
  /// function as its cheapest plan that fits, or else as the one that needs
  /// least.
  std::optional<PlanPeak> getPeak(int number, const CheapestPlan &plan,
                                  const Decided &decided) {
    Decided next = decided;
    decide(number, plan, next);
    // Try the cheapest plans of later functions first; most fit.
    Decided all = next;
    for (size_t later = number + 1; later < module.functions.size(); ++later) {
      const CheapestPlan *cheapest = getCheapest(later, all);
      if (!cheapest)
        return std::nullopt;
      decide(later, *cheapest, all);
    }
    llvm::Expected<std::vector<int64_t>> peaks =
        tryPlan(module, getDecisions(all), all.plans, collectiveCosts,
                options.regathers, options.limit);
    if (!peaks) {
      getRoot().emitError("the memory that a plan needs is not known: ")
          << llvm::toString(peaks.takeError());
      return std::nullopt;
    }
    int64_t most = *llvm::max_element(*peaks);
    if (!cheapestPeak)
      cheapestPeak = most;
    int64_t peak = (*peaks)[number];
    // Every function holds the arguments of all. Those that only later
    // functions use might have storage layouts of less memory.
    bool storesMore = llvm::any_of(all.stored, [&](const auto &value) {
      return graph.values[value.first].isStored &&
             !next.stored.count(value.first);
    });
    bool isLast = number + 1 == static_cast<int>(module.functions.size());
    if (most <= options.limit.bytes || peak > options.limit.bytes || isLast)
      return PlanPeak{most, storesMore};
    const MemoryConstrainedSearch *later = find(number + 1, next);
    if (!later)
      return std::nullopt;
    if (!later->plan.strategies.empty())
      return PlanPeak{std::max(peak, later->peak)};
    return PlanPeak{later->leastPeak, later->plan.lowerBound < unreachable};
  }

  /// Reports that no plan tried fits, and whether one with rematerialised
  /// all-gathers of weights would.
  void refuse(const MemoryConstrainedSearch &found) {
    std::optional<int64_t> again = getPeakIfRegathered(found.memoryPrice);
    auto diagnostic = emitMemoryError(getRoot())
                      << "a device has " << options.limit.bytes
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
    FailureOr<CollectiveCosts> collectiveCosts =
        getObjectiveCosts(*other, options.objective, options.machine);
    if (failed(collectiveCosts))
      return std::nullopt;
    return CheapestPlanner(*other, *collectiveCosts, regathering, steps)
        .getPeakAtMemoryPrice(memoryPrice);
  }

  PlanCost getPlanCost(const CheapestPlan &plan) const {
    return {getObjective().str(), plan.cost, plan.lowerBound, std::nullopt};
  }

  /// Whether the plan may cost more than the optimum by more than the gap.
  bool isCutOff(const CheapestPlan &plan) const {
    return !getPlanCost(plan).isProved() &&
           (!collectiveCosts.hasLatencies() ||
            plan.lowerBound <
                plan.cost * (1 - options.search.gap) * (1 - costTolerance));
  }

  StringRef getObjective() const {
    return collectiveCosts.hasLatencies() ? "time" : "bytes";
  }

  ModuleOp getRoot() const {
    MeshOp mesh = module.mesh;
    return mesh->getParentOfType<ModuleOp>();
  }

  ModuleGraph &module;
  const ShardingGraph &graph;
  const CollectiveCosts &collectiveCosts;
  const CheapestOptions &options;
  std::shared_ptr<LayoutSteps> steps;
  std::shared_ptr<LayoutGraphs> layouts;
  std::map<std::pair<int, SearchProblem::StorageLayouts>, Planned> planned;
  /// The peak of the first plan tried, made of the cheapest plans of all
  /// functions.
  std::optional<int64_t> cheapestPeak;
};

} // namespace

FailureOr<PlanDecisions>
shardc::planCheapest(ModuleGraph &module, const CheapestOptions &options,
                     std::shared_ptr<LayoutSteps> steps) {
  FailureOr<CollectiveCosts> collectiveCosts =
      getObjectiveCosts(module, options.objective, options.machine);
  if (failed(collectiveCosts))
    return failure();
  return CheapestPlanner(module, *collectiveCosts, options, std::move(steps))
      .run();
}
