//===- KBestPlans.cpp - Plans in the order of their cost ------------------===//

#include "shardc/AutoSharding/KBestPlans.h"

#include "DualBound.h"

#include "llvm/ADT/Sequence.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace llvm;
using namespace shardc;

namespace {

/// The division of a set after its cheapest plan has been returned.
struct Division {
  /// The set: number `place` of division `parent`; null: all plans.
  std::shared_ptr<const Division> parent;
  int place = 0;
  /// The strategy of each op in that plan, and the order in which ops run
  /// differently.
  std::vector<int> plan, order;
};

/// A set of plans. In set number `place` of a division, the ops before that
/// place of its order run as in its plan, and the op at that place does not.
struct PlanSet {
  std::shared_ptr<const Division> division;
  int place = 0;
  /// A lower bound of its plans.
  double bound = 0;
  /// Its cheapest plan, once searched for.
  std::optional<CheapestPlan> plan = {};

  double getKey() const { return plan ? plan->cost : bound; }
  bool operator<(const PlanSet &o) const { return getKey() > o.getKey(); }
};

} // namespace

/// Per op the permitted strategies; nullopt: all of them.
using Allowed = std::vector<std::optional<std::vector<int>>>;

class shardc::PlanDivisions {
public:
  PlanDivisions(SearchProblem &problem, const CollectiveCosts &collectiveCosts,
                const SearchOptions &first, CheapestPlan cheapest)
      : problem(problem), collectiveCosts(collectiveCosts), options(first),
        maxSearches(std::max(first.kBest.minSearches,
                             first.maxBranchOptions / first.kBest.totalPart /
                                 (problem.getNumStrategies() + 1))) {
    options.maxBranchOptions /= first.kBest.searchPart;
    options.maxWork /= first.kBest.searchPart;
    // A set whose search exceeds its work stays without a plan; its bound
    // suffices.
    options.usesBeam = false;
    leastMissed =
        cheapest.strategies.empty() ? cheapest.lowerBound : unreachable;
    if (!cheapest.strategies.empty())
      sets.push_back({nullptr, 0, cheapest.lowerBound, std::move(cheapest)});
  }

  CheapestPlan next() {
    if (last)
      divide(*std::exchange(last, std::nullopt));
    while (!sets.empty() && sets.front().getKey() < getLimit()) {
      if (!sets.front().plan && numSearches == maxSearches)
        break;
      std::pop_heap(sets.begin(), sets.end());
      PlanSet set = std::move(sets.back());
      sets.pop_back();
      if (set.plan) {
        CheapestPlan plan = *set.plan;
        plan.lowerBound = std::min(plan.lowerBound, getBound());
        last = std::move(set);
        return plan;
      }
      search(std::move(set));
    }
    CheapestPlan none;
    none.lowerBound = getBound();
    return none;
  }

  void dropAbove(double limit) { upper = std::min(upper, limit); }

  void limitSearches(int64_t number) {
    maxSearches = std::min(maxSearches, numSearches + number);
  }

  double getBound() const {
    double least = std::min(upper, leastMissed);
    if (last)
      least = std::min(least, last->plan->lowerBound);
    for (const PlanSet &set : sets)
      least = std::min(least, set.plan ? set.plan->lowerBound : set.bound);
    return least;
  }

private:
  double getLimit() const { return upper * (1 - costTolerance); }

  void push(PlanSet set) {
    sets.push_back(std::move(set));
    std::push_heap(sets.begin(), sets.end());
  }

  Allowed getAllowed(const PlanSet &set) const {
    Allowed allowed(problem.ops.size());
    int place = set.place;
    for (const Division *division = set.division.get(); division;
         place = division->place, division = division->parent.get()) {
      // Inner divisions come first and have already fixed the ops of outer
      // ones.
      for (int op : ArrayRef(division->order).take_front(place))
        if (!allowed[op])
          allowed[op] = {division->plan[op]};
      int op = division->order[place];
      if (!allowed[op]) {
        allowed[op].emplace(problem.ops[op].strategies->size());
        std::iota(allowed[op]->begin(), allowed[op]->end(), 0);
      }
      llvm::erase(*allowed[op], division->plan[op]);
    }
    return allowed;
  }

  /// Searches for the cheapest plan of a set.
  void search(PlanSet set) {
    Allowed allowed = getAllowed(set);
    std::vector<SearchOp> all = problem.ops;
    for (auto [op, left] : llvm::zip_equal(problem.ops, allowed)) {
      if (!left)
        continue;
      std::vector<SearchStrategy> some;
      for (int strategy : *left)
        some.push_back((*op.strategies)[strategy]);
      op.strategies =
          std::make_shared<const std::vector<SearchStrategy>>(std::move(some));
    }
    ++numSearches;
    CheapestPlan plan =
        findCheapestPlan(problem, collectiveCosts, options, upper);
    problem.ops = std::move(all);
    for (auto [strategy, left] : llvm::zip(plan.strategies, allowed))
      if (left)
        strategy = (*left)[strategy];
    plan.lowerBound = std::max(plan.lowerBound, set.bound);
    if (plan.strategies.empty()) {
      leastMissed = std::min(leastMissed, plan.lowerBound);
      return;
    }
    set.plan = std::move(plan);
    push(std::move(set));
  }

  /// Divides `set` without its cheapest plan into disjoint sets.
  void divide(const PlanSet &set) {
    if (excess.empty())
      measure();
    auto division = std::make_shared<Division>();
    division->parent = set.division;
    division->place = set.place;
    division->plan = set.plan->strategies;
    // By op: the least excess over the bound if the op runs differently. Ops of
    // the largest excess come first. Their sets may be excluded at once, and
    // later sets have these ops fixed, which makes searches faster.
    std::vector<double> least(problem.ops.size(), unreachable);
    Allowed allowed = getAllowed(set);
    for (size_t op = 0; op < least.size(); ++op) {
      auto consider = [&](int strategy) {
        if (strategy != division->plan[op])
          least[op] = std::min(least[op], excess[op][strategy]);
      };
      if (allowed[op])
        llvm::for_each(*allowed[op], consider);
      else
        llvm::for_each(llvm::seq<int>(0, excess[op].size()), consider);
      if (least[op] < unreachable)
        division->order.push_back(op);
    }
    llvm::stable_sort(division->order, [&](int lhs, int rhs) {
      return least[lhs] > least[rhs];
    });
    for (auto [place, op] : llvm::enumerate(division->order)) {
      double bound = std::max(set.plan->lowerBound, ofAll + least[op]);
      if (bound < getLimit())
        push({division, static_cast<int>(place), bound});
    }
  }

  /// Computes the excess of every strategy over the bound of all plans.
  void measure() {
    OpEquivalenceClasses classes(problem);
    CostGraphs graphs(options);
    DualBound bound(problem, classes, graphs, options);
    for (int sweep = 0; sweep < options.bound.maxSweeps; ++sweep) {
      double before = std::exchange(ofAll, bound.sweep());
      if (ofAll - before <= options.minGap * ofAll)
        break;
    }
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      excess.push_back(bound.getExcess(classes.opClassOf[op]));
      for (double &more : excess.back())
        more = more < unreachable ? more - costTolerance * ofAll : unreachable;
    }
  }

  SearchProblem &problem;
  const CollectiveCosts &collectiveCosts;
  SearchOptions options;
  int64_t maxSearches, numSearches = 0;
  /// A heap with the least key first.
  std::vector<PlanSet> sets;
  /// The set of the plan returned last, not divided yet.
  std::optional<PlanSet> last;
  /// Plans of this cost or more are left out; a lower bound of the plans that
  /// searches may have missed.
  double upper = unreachable, leastMissed;
  /// A lower bound of all plans, and the excess over it by op and strategy.
  double ofAll = 0;
  std::vector<std::vector<double>> excess;
};

KBestPlans::KBestPlans(SearchProblem &problem,
                       const CollectiveCosts &collectiveCosts,
                       const SearchOptions &options, CheapestPlan cheapest)
    : divisions(std::make_unique<PlanDivisions>(problem, collectiveCosts,
                                                options, std::move(cheapest))) {
}

KBestPlans::~KBestPlans() = default;

CheapestPlan KBestPlans::next() { return divisions->next(); }

void KBestPlans::dropAbove(double upper) { divisions->dropAbove(upper); }

void KBestPlans::limitSearches(int64_t number) {
  divisions->limitSearches(number);
}

double KBestPlans::getBound() const { return divisions->getBound(); }
