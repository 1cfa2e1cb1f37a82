//===- CheapestPlan.cpp - Branch and bound over latencies -----------------===//

#include "shardc/AutoSharding/CheapestPlan.h"

#include "LatencySets.h"

#include <algorithm>
#include <deque>

using namespace llvm;
using namespace shardc;

namespace {

/// The result of a search with some collectives forbidden.
struct Found {
  MergedCollectives forbidden;
  SearchSolution solution;
  /// The cost of the solution, if there is one.
  CostTerms terms;
};

class LatencySearch {
public:
  LatencySearch(SearchProblem &problem, const CollectiveCosts &collectiveCosts,
                const SearchOptions &options, double upper)
      : problem(problem), collectiveCosts(collectiveCosts), options(options),
        search(problem, options), limits{options.maxWork},
        gap(std::max(options.gap, options.minGap)),
        maxSearches(std::max(options.latency.minSearches,
                             options.maxBranchOptions /
                                 (problem.getNumStrategies() + 1))),
        maxWork(options.latency.totalWork * options.maxWork) {
    // A search without latencies goes below the gap asked for, since branches
    // start from its plan.
    if (collectiveCosts.hasLatencies())
      limits.indifference = options.minGap;
    best.cost = upper;
  }

  CheapestPlan run() {
    const Found &all = *find({}, best.cost);
    double least = all.solution.lowerBound;
    if (!all.solution.strategies.empty())
      least = searchBelow(least);
    best.lowerBound = std::min(best.cost, least);
    if (best.strategies.empty())
      best.cost = unreachable;
    return std::move(best);
  }

private:
  /// Branches until no plan is cheaper than the best one by more than the gap.
  /// `least` is a lower bound of all plans. Returns the lower bound afterwards.
  double searchBelow(double least) {
    // A target postpones most branches, even if the best plan known is still
    // far from optimal. If no plan is below the target, it is raised.
    while (options.latency.branches &&
           least < getLimit() * (1 - costTolerance)) {
      upper = std::min(getLimit(), least + options.latency.targetPart *
                                               (best.cost - least));
      leastOpen = unreachable;
      visit({}, {}, least);
      least = std::max(least, leastOpen);
      // Some branches below the target were cut off.
      if (!isAbove(leastOpen))
        break;
    }
    return least;
  }

  /// Takes the plan of `chosen` if it is the best so far. Returns its cost.
  CostTerms consider(ArrayRef<int> chosen) {
    CostTerms terms = problem.getCostTerms(chosen);
    if (terms.getTotal() < best.cost) {
      best.strategies = chosen.vec();
      best.cost = terms.getTotal();
      best.terms = terms;
    }
    return terms;
  }

  /// The cost below which a plan is better than the best one by more than the
  /// gap.
  double getLimit() const { return best.cost * (1 - gap); }
  /// The same, at most the current target.
  double getUpper() const { return std::min(upper, getLimit()); }
  bool isAbove(double bound) const {
    return bound >= getUpper() * (1 - costTolerance);
  }

  /// A lower bound of plans without `forbidden`, latencies left out: the
  /// highest of the searches that had fewer collectives forbidden.
  double getKnownBound(const MergedCollectives &forbidden) const {
    double bound = 0;
    for (const Found &found : searches)
      if (found.solution.lowerBound > bound &&
          std::includes(forbidden.begin(), forbidden.end(),
                        found.forbidden.begin(), found.forbidden.end()))
        bound = found.solution.lowerBound;
    return bound;
  }

  /// The cheapest plan without `forbidden` that costs at most `upper`,
  /// latencies left out; null if the search was cut off. The solution of an
  /// earlier search with fewer collectives forbidden remains optimal if it uses
  /// none of `forbidden`.
  const Found *find(const MergedCollectives &forbidden, double upper) {
    for (const Found &found : searches)
      if (!found.solution.strategies.empty() &&
          !haveCommon(found.terms.collectives, forbidden) &&
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
      limits.maxWork /= options.latency.branchPart;
    if (!found.solution.strategies.empty())
      found.terms = consider(found.solution.strategies);
    return &found;
  }

  /// Branches on `collectives`: plans without the first, plans with the first
  /// but without the second, and so on. `with`, a member of `paid`, collects
  /// the collectives whose latency is charged. `getAll` lists the collectives
  /// to forbid for one of `collectives`.
  void branch(
      const MergedCollectives &forbidden, const Paid &paid, double least,
      const MergedCollectives &collectives, MergedCollectives &with,
      llvm::function_ref<MergedCollectives(const MergedCollective &)> getAll) {
    struct Child {
      double bound;
      MergedCollective collective;
      MergedCollectives forbidden;
    };
    std::vector<Child> children;
    for (const MergedCollective &collective : collectives) {
      double paidSoFar = getCost(paid, collectiveCosts);
      if (isAbove(paidSoFar + least))
        return;
      if (with.count(collective))
        continue;
      Child child{0, collective, forbidden};
      MergedCollectives without = getAll(collective);
      child.forbidden.insert(without.begin(), without.end());
      child.bound = getKnownBound(child.forbidden);
      if (!isAbove(paidSoFar + child.bound) &&
          find(child.forbidden, getUpper() - paidSoFar))
        child.bound = getKnownBound(child.forbidden);
      // A latency that no good plan avoids is charged at once.
      if (isAbove(paidSoFar + child.bound)) {
        leastOpen = std::min(leastOpen, paidSoFar + child.bound);
        with.insert(collective);
      } else {
        children.push_back(std::move(child));
      }
    }
    // The children of the highest bounds come first: their latencies are then
    // charged in all later ones.
    llvm::stable_sort(children, [](const Child &lhs, const Child &rhs) {
      return lhs.bound > rhs.bound;
    });
    for (const Child &child : children) {
      double bound = getCost(paid, collectiveCosts) + least;
      if (isAbove(bound))
        return;
      visit(child.forbidden, paid, bound);
      with.insert(child.collective);
    }
  }

  /// Explores the plans without `forbidden`. They are charged `paid` whether
  /// they use those collectives or not: plans that do not are in another
  /// branch. `bound` is a lower bound of them.
  void visit(const MergedCollectives &forbidden, Paid paid, double bound) {
    bound = std::max(bound,
                     getCost(paid, collectiveCosts) + getKnownBound(forbidden));
    if (isAbove(bound)) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    const Found *result =
        ++numVisits > options.latency.visitsPerSearch * maxSearches
            ? nullptr
            : find(forbidden, getUpper() - getCost(paid, collectiveCosts));
    if (!result) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    const SearchSolution &found = result->solution;
    const CostTerms &terms = result->terms;
    double least = getCost(paid, collectiveCosts) + found.lowerBound;
    if (found.strategies.empty()) {
      leastOpen = std::min(leastOpen, least);
      return;
    }
    // The planner uses a forbidden collective where nothing else is possible.
    // There is nothing to branch on then.
    if (haveCommon(terms.collectives, forbidden)) {
      leastOpen = std::min(leastOpen, least);
      return;
    }
    branch(forbidden, paid, found.lowerBound, splitByAxis(terms.collectives),
           paid.alongAxis, [&](const MergedCollective &along) {
             return getCollectivesAlong(along, problem.getAxes());
           });
    branch(forbidden, paid, found.lowerBound, terms.collectives, paid.exactly,
           [](const MergedCollective &collective) {
             return MergedCollectives{collective};
           });
    // The remaining plans are charged every latency of the plan found, so that
    // one is the cheapest of them.
    leastOpen =
        std::min(leastOpen, getCost(paid, collectiveCosts) + found.lowerBound);
  }

  SearchProblem &problem;
  const CollectiveCosts &collectiveCosts;
  const SearchOptions &options;
  ShardingSearch search;
  SearchLimits limits;
  double gap;
  int64_t maxSearches, numSearches = 0, numVisits = 0;
  size_t maxWork;
  /// A deque, since `find` returns pointers to its elements.
  std::deque<Found> searches;
  CheapestPlan best;
  /// A lower bound of the plans not explored, and the target.
  double leastOpen = unreachable, upper = unreachable;
};

} // namespace

CheapestPlan shardc::findCheapestPlan(SearchProblem &problem,
                                      const CollectiveCosts &collectiveCosts,
                                      const SearchOptions &options,
                                      double upper) {
  CheapestPlan plan =
      LatencySearch(problem, collectiveCosts, options, upper).run();
  problem.forbid({});
  return plan;
}
