//===- CheapestPlan.cpp - The exact minimum of an objective ---------------===//

#include "shardc/AutoSharding/CheapestPlan.h"

#include "LatencySets.h"

#include <algorithm>
#include <deque>

using namespace llvm;
using namespace shardc;

namespace {

/// Plans that differ by less than this part of their cost are equally good:
/// more is not asked of a gap, and less not of a search that leaves out starts,
/// since branches start from what it finds.
constexpr double leastGap = 1e-6;
/// Costs closer than this part of them are equal.
constexpr double tolerance = 1e-12;
/// So many searches are made however many options each looks at.
constexpr int64_t minSearches = 8;
/// So many sets of plans are looked at for each of them: most need none of
/// their own.
constexpr int64_t visitsPerSearch = 64;
/// A search after the first one looks at this part of the pairs of rows that
/// the first may look at, and all together at so many times as many.
constexpr size_t branchPart = 16, allWork = 2;
/// Branches are left first if they cost more than the bound by this part of
/// what the best plan does.
constexpr double targetPart = 1.0 / 3;

/// What a search found that could not start some collectives.
struct Found {
  Starts forbidden;
  SearchSolution solution;
  /// Of the solution, if there is one.
  CostTerms price;
};

class StartSearch {
public:
  StartSearch(SearchProblem &problem, const CollectiveCosts &prices,
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
    best.cost = plan.upper;
  }

  CheapestPlan run() {
    const Found &all = *find({}, best.cost);
    double least = all.solution.lowerBound;
    if (!all.solution.options.empty())
      least = searchBelow(all, least);
    best.lowerBound = std::min(best.cost, least);
    if (best.options.empty())
      best.cost = unreachable;
    return std::move(best);
  }

private:
  /// Looks for plans that are cheaper than the best one, but for the gap. `all`
  /// is what was found where everything may be started, and no plan costs less
  /// than `least`; returns what is known of that afterwards.
  double searchBelow(const Found &all, double least) {
    if (all.price.start > 0 && least < getLimit())
      payEachStart();
    // Looking for the cheapest plan below a target leaves most branches early,
    // however dear the best plan known still is. If there is none the target
    // was too low.
    while (least < getLimit() * (1 - tolerance)) {
      upper = std::min(getLimit(), least + targetPart * (best.cost - least));
      leastOpen = unreachable;
      visit({}, {}, least);
      least = std::max(least, leastOpen);
      // Else what is left was not looked at.
      if (!isAbove(leastOpen))
        break;
    }
    return least;
  }

  /// Takes the plan of `options` if it is the best so far; its price.
  CostTerms consider(ArrayRef<int> options) {
    CostTerms price = problem.price(options);
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
  double getLimit() const { return best.cost * (1 - gap); }
  /// Nor do they now; `bound` may be such a cost plus or minus what is paid.
  double getUpper() const { return std::min(upper, getLimit()); }
  bool isAbove(double bound) const {
    return bound >= getUpper() * (1 - tolerance);
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
      double paidSoFar = getCost(paid, prices);
      if (isAbove(paidSoFar + least))
        return;
      if (with.count(start))
        continue;
      Child child{0, start, forbidden};
      Starts without = getAll(start);
      child.forbidden.insert(without.begin(), without.end());
      child.bound = getKnownBound(child.forbidden);
      if (!isAbove(paidSoFar + child.bound) &&
          find(child.forbidden, getUpper() - paidSoFar))
        child.bound = getKnownBound(child.forbidden);
      // What no plan does without is paid for at once.
      if (isAbove(paidSoFar + child.bound)) {
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
      double bound = getCost(paid, prices) + least;
      if (isAbove(bound))
        return;
      visit(child.forbidden, paid, bound);
      with.insert(child.start);
    }
  }

  /// Plans without `forbidden`, which pay for `paid` whether they use it or
  /// not: those that do not are looked at elsewhere. They cost at least
  /// `bound`.
  void visit(const Starts &forbidden, Paid paid, double bound) {
    bound = std::max(bound, getCost(paid, prices) + getKnownBound(forbidden));
    if (isAbove(bound)) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    const Found *result =
        ++numVisits > visitsPerSearch * maxSearches
            ? nullptr
            : find(forbidden, getUpper() - getCost(paid, prices));
    if (!result) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    const SearchSolution &found = result->solution;
    const CostTerms &price = result->price;
    double least = getCost(paid, prices) + found.lowerBound;
    if (found.options.empty()) {
      leastOpen = std::min(leastOpen, least);
      return;
    }
    // Reshards may use what is forbidden if there is no other way: then there
    // is nothing to branch on.
    if (haveCommon(price.starts, forbidden)) {
      leastOpen = std::min(leastOpen, least);
      return;
    }
    branch(forbidden, paid, found.lowerBound, splitByAxis(price.starts),
           paid.alongAxis, [&](const CollectiveStart &along) {
             return getStartsAlong(along, problem.getAxes());
           });
    branch(forbidden, paid, found.lowerBound, price.starts, paid.exactly,
           [](const CollectiveStart &start) { return Starts{start}; });
    // What is left pays for all that it was not branched on: the plan found is
    // the cheapest of these, as far as the search knows.
    leastOpen = std::min(leastOpen, getCost(paid, prices) + found.lowerBound);
  }

  SearchProblem &problem;
  const CollectiveCosts &prices;
  ShardingSearch search;
  SearchLimits limits;
  double gap;
  int64_t maxSearches, numSearches = 0, numVisits = 0;
  size_t maxWork;
  /// In a list that grows without moving what is in it.
  std::deque<Found> searches;
  CheapestPlan best;
  /// What the plans that were not looked at cost at least, and what plans may
  /// cost to be looked at.
  double leastOpen = unreachable, upper = unreachable;
};

} // namespace

CheapestPlan shardc::findCheapestPlan(SearchProblem &problem,
                                      const CollectiveCosts &prices,
                                      const PlanLimits &limits) {
  CheapestPlan plan = StartSearch(problem, prices, limits).run();
  problem.forbid({});
  return plan;
}
