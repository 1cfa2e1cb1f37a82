//===- KBestPlans.cpp - Plans in the order of their cost ------------------===//

#include "shardc/AutoSharding/KBestPlans.h"

#include "DualBound.h"

#include "llvm/ADT/Sequence.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace llvm;
using namespace shardc;

/// So many sets of plans are searched however many options there are.
constexpr int64_t minSearches = 16;
/// All together look at this part of the options that branches of the first
/// search may look at.
constexpr int64_t allPart = 4;
/// A search of a set looks at this part of what the first one may look at.
constexpr int64_t searchPart = 16;
/// The bound of all plans is raised until a sweep adds less than this part of
/// it, and by so many sweeps.
constexpr double progress = 1e-6;
constexpr int maxSweeps = 60;
/// Costs closer than this part of them are equal.
constexpr double tolerance = 1e-12;

namespace {

/// What is left of a set when its cheapest plan has been handed out.
struct Division {
  /// The set: number `place` of this division; null: all plans.
  std::shared_ptr<const Division> parent;
  int place = 0;
  /// The options of each op, and the order in which ops run differently.
  std::vector<int> plan, order;
};

/// In set number `place` of a division the ops before that place of its order
/// run as in its plan, and the op there does not.
struct PlanSet {
  std::shared_ptr<const Division> division;
  int place = 0;
  /// No plan of it costs less.
  double bound = 0;
  /// The cheapest one, once it was searched for.
  std::optional<CheapestPlan> plan = {};

  double getKey() const { return plan ? plan->cost : bound; }
  bool operator<(const PlanSet &o) const { return getKey() > o.getKey(); }
};

} // namespace

/// By op the options that are left; none: all of them.
using Allowed = std::vector<std::optional<std::vector<int>>>;

class shardc::PlanDivisions {
public:
  PlanDivisions(SearchProblem &problem, const CollectiveCosts &prices,
                const PlanLimits &first, CheapestPlan cheapest)
      : problem(problem), prices(prices), limits(first),
        maxSearches(std::max(minSearches, first.maxBranchOptions / allPart /
                                              (problem.getNumOptions() + 1))) {
    limits.maxBranchOptions /= searchPart;
    limits.maxWork /= searchPart;
    // A set without a plan of its own is left open: that says enough.
    limits.becomesNarrow = false;
    leastMissed = cheapest.options.empty() ? cheapest.lowerBound : unreachable;
    if (!cheapest.options.empty())
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
  double getLimit() const { return upper * (1 - tolerance); }

  void push(PlanSet set) {
    sets.push_back(std::move(set));
    std::push_heap(sets.begin(), sets.end());
  }

  Allowed getAllowed(const PlanSet &set) const {
    Allowed allowed(problem.ops.size());
    int place = set.place;
    for (const Division *division = set.division.get(); division;
         place = division->place, division = division->parent.get()) {
      // Inner divisions, which come first, have fixed what outer ones have.
      for (int op : ArrayRef(division->order).take_front(place))
        if (!allowed[op])
          allowed[op] = {division->plan[op]};
      int op = division->order[place];
      if (!allowed[op]) {
        allowed[op].emplace(problem.ops[op].options->size());
        std::iota(allowed[op]->begin(), allowed[op]->end(), 0);
      }
      llvm::erase(*allowed[op], division->plan[op]);
    }
    return allowed;
  }

  /// Finds the cheapest plan of a set.
  void search(PlanSet set) {
    Allowed allowed = getAllowed(set);
    std::vector<SearchOp> all = problem.ops;
    for (auto [op, left] : llvm::zip_equal(problem.ops, allowed)) {
      if (!left)
        continue;
      std::vector<SearchOption> options;
      for (int option : *left)
        options.push_back((*op.options)[option]);
      op.options =
          std::make_shared<const std::vector<SearchOption>>(std::move(options));
    }
    ++numSearches;
    limits.upper = upper;
    CheapestPlan plan = findCheapestPlan(problem, prices, limits);
    problem.ops = std::move(all);
    for (auto [option, left] : llvm::zip(plan.options, allowed))
      if (left)
        option = (*left)[option];
    plan.lowerBound = std::max(plan.lowerBound, set.bound);
    if (plan.options.empty()) {
      leastMissed = std::min(leastMissed, plan.lowerBound);
      return;
    }
    set.plan = std::move(plan);
    push(std::move(set));
  }

  /// Divides what is left of `set` without its cheapest plan.
  void divide(const PlanSet &set) {
    if (excess.empty())
      measure();
    auto division = std::make_shared<Division>();
    division->parent = set.division;
    division->place = set.place;
    division->plan = set.plan->options;
    // By op: what is above the bound at least if it runs differently. Those
    // where that is most come first: it may be more than plans may cost, and
    // what is fixed is not searched among.
    std::vector<double> least(problem.ops.size(), unreachable);
    Allowed allowed = getAllowed(set);
    for (size_t op = 0; op < least.size(); ++op) {
      auto consider = [&](int option) {
        if (option != division->plan[op])
          least[op] = std::min(least[op], excess[op][option]);
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

  /// Finds out what options cost at least above the bound of all plans.
  void measure() {
    OpEquivalenceClasses classes(problem);
    PriceGraphs graphs;
    DualBound bound(problem, classes, graphs);
    for (int sweep = 0; sweep < maxSweeps; ++sweep) {
      double before = std::exchange(ofAll, bound.sweep());
      if (ofAll - before <= progress * ofAll)
        break;
    }
    for (size_t op = 0; op < problem.ops.size(); ++op) {
      excess.push_back(bound.getExcess(classes.opClassOf[op]));
      for (double &more : excess.back())
        more = more < unreachable ? more - tolerance * ofAll : unreachable;
    }
  }

  SearchProblem &problem;
  const CollectiveCosts &prices;
  PlanLimits limits;
  int64_t maxSearches, numSearches = 0;
  /// A heap, the least key first.
  std::vector<PlanSet> sets;
  /// What was handed out last, not divided yet.
  std::optional<PlanSet> last;
  /// Plans that cost as much are left out, and no plan that no search found
  /// costs less.
  double upper = unreachable, leastMissed;
  /// What plans cost at least, and by op and option how much more.
  double ofAll = 0;
  std::vector<std::vector<double>> excess;
};

KBestPlans::KBestPlans(SearchProblem &problem, const CollectiveCosts &prices,
                       const PlanLimits &limits, CheapestPlan cheapest)
    : divisions(std::make_unique<PlanDivisions>(problem, prices, limits,
                                                std::move(cheapest))) {}

KBestPlans::~KBestPlans() = default;

CheapestPlan KBestPlans::next() { return divisions->next(); }

void KBestPlans::dropAbove(double upper) { divisions->dropAbove(upper); }

void KBestPlans::limitSearches(int64_t number) {
  divisions->limitSearches(number);
}

double KBestPlans::getBound() const { return divisions->getBound(); }
