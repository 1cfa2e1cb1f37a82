//===- CheapestPlan.cpp - The exact minimum of an objective ---------------===//

#include "shardc/Analysis/CheapestPlan.h"

#include <algorithm>
#include <deque>

using namespace mlir;
using namespace shardc;

namespace {

/// Plans that differ by less than this part of their cost are equally good:
/// more is not asked of a gap, and less not of a search that leaves out starts,
/// since branches start from what it finds.
constexpr double leastGap = 1e-6;
/// So many searches are made however many options each looks at.
constexpr int64_t minSearches = 8;
/// So many sets of plans are looked at for each of them: most need none of
/// their own.
constexpr int64_t visitsPerSearch = 64;
/// A search after the first one looks at this part of the pairs of rows that
/// the first may look at, and all together at so many times as many.
constexpr size_t branchPart = 16, allWork = 2;

using Starts = std::set<CollectiveStart>;

/// What a search found that could not start some collectives.
struct Found {
  Starts forbidden;
  SearchSolution solution;
  /// Of the solution, if there is one.
  PlanPrice price;
};

/// What a branch pays for. What it costs to start a collective is a sum over
/// its axes, so it can be said that one along an axis is paid for, whatever its
/// other axes are: collectives that can stand in for each other have that in
/// common.
struct Paid {
  /// Over one axis each: some collective of that kind along that axis.
  Starts alongAxis;
  Starts exactly;
};

class StartSearch {
public:
  StartSearch(SearchProblem &problem, const CollectivePrices &prices,
              const PlanLimits &plan)
      : problem(problem), prices(prices), search(problem),
        gap(std::max(plan.gap, leastGap)),
        maxSearches(std::max(minSearches, plan.maxBranchOptions /
                                              (problem.getNumOptions() + 1))),
        maxWork(allWork * plan.maxWork) {
    limits.maxWork = plan.maxWork;
    limits.becomesNarrow = plan.becomesNarrow;
    if (prices.hasStarts())
      limits.indifference = leastGap;
  }

  CheapestPlan run() {
    visit({}, {}, 0);
    best.lowerBound = std::min(best.cost, leastOpen);
    return std::move(best);
  }

private:
  /// Takes the plan of `options` if it is the best so far; its price.
  PlanPrice consider(ArrayRef<int> options) {
    PlanPrice price = problem.price(options);
    if (price.getTotal() < best.cost) {
      best.options = options.vec();
      best.cost = price.getTotal();
      best.price = price;
    }
    return price;
  }

  /// Looks for a good plan before branching: one that pays for every start by
  /// itself.
  void payEachStart() {
    search.dropAbove(best.cost);
    problem.forbid({}, /*paysEachStart=*/true);
    limits.upper = unreachable;
    SearchSolution found = search.find(limits);
    problem.forbid({});
    if (!found.options.empty())
      consider(found.options);
  }

  /// Plans that cost more do not matter beside the best one.
  double getUpper() const { return best.cost * (1 - gap); }

  double getCost(const Paid &paid) const {
    double cost = getStartCost(paid.exactly, prices);
    for (const CollectiveStart &along : paid.alongAxis)
      if (llvm::none_of(paid.exactly, [&](const CollectiveStart &start) {
            return isAlong(start, along);
          }))
        cost += prices.getStart(along.kind.first, along.kind.second);
    return cost;
  }

  /// Whether `start` is one of the collectives that `along` stands for.
  static bool isAlong(const CollectiveStart &start,
                      const CollectiveStart &along) {
    return start.part == along.part && start.kind.first == along.kind.first &&
           (start.kind.second & along.kind.second);
  }

  /// All collectives that `along` stands for.
  Starts getStarts(const CollectiveStart &along) const {
    Starts starts;
    AxisSet others = problem.getAxes() & ~along.kind.second;
    for (AxisSet more = others;; more = (more - 1) & others) {
      starts.insert({along.part, {along.kind.first, along.kind.second | more}});
      if (more == 0)
        return starts;
    }
  }

  /// `starts` by axis.
  static Starts splitByAxis(const Starts &starts) {
    Starts split;
    for (const CollectiveStart &start : starts)
      for (AxisSet axes = start.kind.second; axes; axes &= axes - 1)
        split.insert({start.part, {start.kind.first, axes & (~axes + 1)}});
    return split;
  }

  static bool haveCommon(const Starts &lhs, const Starts &rhs) {
    return llvm::any_of(lhs, [&](const CollectiveStart &start) {
      return rhs.count(start) > 0;
    });
  }

  /// What plans without `forbidden` cost at least, starts left out, as far as
  /// searches say that could start more.
  double getKnownBound(const Starts &forbidden) const {
    double bound = 0;
    for (const Found &found : searches)
      if (found.solution.lowerBound > bound &&
          std::includes(forbidden.begin(), forbidden.end(),
                        found.forbidden.begin(), found.forbidden.end()))
        bound = found.solution.lowerBound;
    return bound;
  }

  /// The cheapest plan without `forbidden` that costs at most `upper`, starts
  /// left out; null if there may be one, but it was searched for too long. What
  /// was found when more could be started is still the cheapest if it starts
  /// nothing that is forbidden.
  const Found *find(const Starts &forbidden, double upper) {
    for (const Found &found : searches)
      if (!found.solution.options.empty() &&
          !haveCommon(found.price.starts, forbidden) &&
          std::includes(forbidden.begin(), forbidden.end(),
                        found.forbidden.begin(), found.forbidden.end()))
        return &found;
    if (++numSearches > maxSearches || search.getWork() > maxWork)
      return nullptr;
    if (numSearches > 1)
      search.dropAbove(best.cost);
    problem.forbid(forbidden);
    limits.upper = upper;
    Found &found = searches.emplace_back();
    found.forbidden = forbidden;
    found.solution = search.find(limits);
    if (numSearches == 1)
      limits.maxWork /= branchPart;
    if (!found.solution.options.empty())
      found.price = consider(found.solution.options);
    return &found;
  }

  /// Plans without the first of `starts`, plans with it but without the second,
  /// and so on; `with`, which is in `paid`, has those paid for.
  void branch(const Starts &forbidden, const Paid &paid, double least,
              const Starts &starts, Starts &with,
              llvm::function_ref<Starts(const CollectiveStart &)> getAll) {
    struct Child {
      double bound;
      CollectiveStart start;
      Starts forbidden;
    };
    std::vector<Child> children;
    for (const CollectiveStart &start : starts) {
      double paidSoFar = getCost(paid);
      if (paidSoFar + least >= getUpper())
        return;
      if (with.count(start))
        continue;
      Child child{0, start, forbidden};
      Starts without = getAll(start);
      child.forbidden.insert(without.begin(), without.end());
      child.bound = getKnownBound(child.forbidden);
      if (paidSoFar + child.bound < getUpper() &&
          find(child.forbidden, getUpper() - paidSoFar))
        child.bound = getKnownBound(child.forbidden);
      // What no plan does without is paid for at once.
      if (paidSoFar + child.bound >= getUpper()) {
        leastOpen = std::min(leastOpen, paidSoFar + child.bound);
        with.insert(start);
      } else {
        children.push_back(std::move(child));
      }
    }
    // Then what is dearest to do without.
    llvm::stable_sort(children, [](const Child &lhs, const Child &rhs) {
      return lhs.bound > rhs.bound;
    });
    for (const Child &child : children) {
      double bound = getCost(paid) + least;
      if (bound >= getUpper())
        return;
      visit(child.forbidden, paid, bound);
      with.insert(child.start);
    }
  }

  /// Plans without `forbidden`, which pay for `paid` whether they use it or
  /// not: those that do not are looked at elsewhere. They cost at least
  /// `bound`.
  void visit(const Starts &forbidden, Paid paid, double bound) {
    double upper = getUpper();
    bound = std::max(bound, getCost(paid) + getKnownBound(forbidden));
    if (bound >= upper) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    const Found *result = ++numVisits > visitsPerSearch * maxSearches
                              ? nullptr
                              : find(forbidden, upper - getCost(paid));
    if (!result) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    const SearchSolution &found = result->solution;
    const PlanPrice &price = result->price;
    double least = getCost(paid) + found.lowerBound;
    if (found.options.empty()) {
      leastOpen = std::min({leastOpen, upper, least});
      return;
    }
    // Reshards may use what is forbidden if there is no other way: then there
    // is nothing to branch on.
    if (haveCommon(price.starts, forbidden)) {
      leastOpen = std::min(leastOpen, least);
      return;
    }
    if (numSearches == 1 && price.start > 0 && least < getUpper())
      payEachStart();
    branch(forbidden, paid, found.lowerBound, splitByAxis(price.starts),
           paid.alongAxis,
           [&](const CollectiveStart &along) { return getStarts(along); });
    branch(forbidden, paid, found.lowerBound, price.starts, paid.exactly,
           [](const CollectiveStart &start) { return Starts{start}; });
    // What is left pays for all that it was not branched on: the plan found is
    // the cheapest of these, as far as the search knows.
    leastOpen = std::min(leastOpen, getCost(paid) + found.lowerBound);
  }

  SearchProblem &problem;
  const CollectivePrices &prices;
  ShardingSearch search;
  SearchLimits limits;
  double gap;
  int64_t maxSearches, numSearches = 0, numVisits = 0;
  size_t maxWork;
  /// In a list that grows without moving what is in it.
  std::deque<Found> searches;
  CheapestPlan best;
  /// What the plans that were not looked at cost at least.
  double leastOpen = unreachable;
};

} // namespace

CheapestPlan shardc::findCheapestPlan(SearchProblem &problem,
                                      const CollectivePrices &prices,
                                      const PlanLimits &limits) {
  return StartSearch(problem, prices, limits).run();
}
