//===- CheapestPlan.cpp - The exact minimum of an objective ---------------===//

#include "shardc/Analysis/CheapestPlan.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Plans that differ by less than this part of their cost are equally good.
constexpr double indifference = 1e-6;
/// So many searches are made however many options each looks at.
constexpr int64_t minSearches = 8;
/// A search after the first one looks at this part of the pairs of rows that
/// the first may look at, and all together at so many times as many.
constexpr size_t branchPart = 16, allWork = 2;

using Starts = std::set<CollectiveStart>;

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
              int64_t maxBranchOptions, size_t firstWork, bool becomesNarrow)
      : problem(problem), prices(prices), search(problem),
        maxSearches(std::max(minSearches,
                             maxBranchOptions / (problem.getNumOptions() + 1))),
        maxWork(allWork * firstWork) {
    limits.maxWork = firstWork;
    limits.becomesNarrow = becomesNarrow;
    if (prices.hasStarts())
      limits.indifference = indifference;
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
      if (prices.hasStarts())
        search.dropAbove(best.cost);
    }
    return price;
  }

  /// Looks for a good plan before branching: one that pays for every start by
  /// itself.
  void payEachStart() {
    problem.forbid({}, /*paysEachStart=*/true);
    limits.upper = unreachable;
    SearchSolution found = search.find(limits);
    problem.forbid({});
    if (!found.options.empty())
      consider(found.options);
  }

  /// Plans that cost more do not matter beside the best one.
  double getUpper() const { return best.cost * (1 - indifference); }

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

  /// `starts` by axis, the most expensive first.
  std::vector<CollectiveStart> splitByAxis(const Starts &starts) const {
    Starts split;
    for (const CollectiveStart &start : starts)
      for (AxisSet axes = start.kind.second; axes; axes &= axes - 1)
        split.insert({start.part, {start.kind.first, axes & (~axes + 1)}});
    return sort(split);
  }

  std::vector<CollectiveStart> sort(const Starts &starts) const {
    std::vector<CollectiveStart> sorted(starts.begin(), starts.end());
    llvm::stable_sort(sorted, [&](const auto &lhs, const auto &rhs) {
      return prices.getStart(lhs.kind.first, lhs.kind.second) >
             prices.getStart(rhs.kind.first, rhs.kind.second);
    });
    return sorted;
  }

  /// Plans without `forbidden`, which pay for `paid` whether they use it or
  /// not: those that do not are looked at elsewhere. They cost at least
  /// `bound`.
  void visit(const Starts &forbidden, Paid paid, double bound) {
    if (++numSearches > maxSearches || search.getWork() > maxWork) {
      leastOpen = std::min(leastOpen, bound);
      return;
    }
    problem.forbid(forbidden);
    double upper = getUpper();
    limits.upper = upper - getCost(paid);
    SearchSolution found = search.find(limits);
    if (numSearches == 1)
      limits.maxWork /= branchPart;
    double least = getCost(paid) + found.lowerBound;
    if (found.options.empty()) {
      leastOpen = std::min({leastOpen, upper, least});
      return;
    }
    PlanPrice price = consider(found.options);
    // Reshards may use what is forbidden if there is no other way: then there
    // is nothing to branch on.
    if (llvm::any_of(price.starts, [&](const CollectiveStart &start) {
          return forbidden.count(start) > 0;
        })) {
      leastOpen = std::min(leastOpen, least);
      return;
    }
    // Plans without the first start, plans with it but without the second, ...
    auto branch = [&](const CollectiveStart &start, const Starts &without,
                      Starts &with) {
      least = getCost(paid) + found.lowerBound;
      if (least >= getUpper())
        return false;
      Starts more = forbidden;
      more.insert(without.begin(), without.end());
      visit(more, paid, least);
      with.insert(start);
      return true;
    };
    auto branchOnAll = [&] {
      if (price.start == 0)
        return;
      if (numSearches == 1 && least < getUpper())
        payEachStart();
      for (const CollectiveStart &along : splitByAxis(price.starts))
        if (!paid.alongAxis.count(along) &&
            !branch(along, getStarts(along), paid.alongAxis))
          return;
      for (const CollectiveStart &start : sort(price.starts))
        if (!paid.exactly.count(start) && !branch(start, {start}, paid.exactly))
          return;
    };
    branchOnAll();
    // What is left pays for all that it was not branched on: the plan found is
    // the cheapest of these, as far as the search knows.
    leastOpen = std::min(leastOpen, getCost(paid) + found.lowerBound);
  }

  SearchProblem &problem;
  const CollectivePrices &prices;
  ShardingSearch search;
  SearchLimits limits;
  int64_t maxSearches, numSearches = 0;
  size_t maxWork;
  CheapestPlan best;
  /// What the plans that were not looked at cost at least.
  double leastOpen = unreachable;
};

} // namespace

CheapestPlan shardc::findCheapestPlan(SearchProblem &problem,
                                      const CollectivePrices &prices,
                                      int64_t maxBranchOptions, size_t maxWork,
                                      bool becomesNarrow) {
  return StartSearch(problem, prices, maxBranchOptions, maxWork, becomesNarrow)
      .run();
}
