//===- CheapestPlan.h - The exact minimum of an objective ------*- C++ -*-===//
//
// `--partition=cheapest` for one function. ShardingSearch.h finds the cheapest
// plan where every price is that of an op or of a tensor. Starts of collectives
// are neither: each is paid once for all tensors of a part of the step. So they
// are left out at first, which gives a bound, and then branched on: for a start
// that the plan found has, either it is paid for, or the plan does without
// (Land, Doig: An automatic method of solving discrete programming problems,
// 1960). Branches whose bound is not a millionth below a plan that was found
// are left: estimates of time are not that good.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_CHEAPESTPLAN_H
#define SHARDC_ANALYSIS_CHEAPESTPLAN_H

#include "shardc/Analysis/PlanPrice.h"
#include "shardc/Analysis/ShardingSearch.h"

namespace shardc {

struct CheapestPlan {
  /// The options of each op of the problem; empty if none was found.
  std::vector<int> options;
  PlanPrice price;
  double cost = unreachable;
  /// No plan costs less. Equal to `cost` by bytes, and a millionth less at most
  /// by time, unless the search was cut off; unreachable if there is no plan.
  double lowerBound = unreachable;
};

/// Options that the searches of a function may look at by default; seconds.
constexpr int64_t defaultBranchOptions = 1'000'000;

/// The cheapest plan of `problem`, whose starts cost what `prices` says. Every
/// branch is a search among all options of the problem: when all branches
/// together have looked at `maxBranchOptions` of them, which is 8 branches at
/// least, the best plan so far is taken. `maxWork` and `becomesNarrow` are
/// those of SearchLimits, for the first search; branches look at a part of
/// that each, and at twice as much together.
CheapestPlan findCheapestPlan(SearchProblem &problem,
                              const CollectivePrices &prices,
                              int64_t maxBranchOptions = defaultBranchOptions,
                              size_t maxWork = defaultSearchWork,
                              bool becomesNarrow = true);

} // namespace shardc

#endif // SHARDC_ANALYSIS_CHEAPESTPLAN_H
