//===- CheapestPlan.h - The exact minimum of an objective -------*- C++ -*-===//
//
// `--partition=cheapest` for one function. ShardingSearch.h finds the cheapest
// plan where every price is that of an op or of a tensor. Starts of collectives
// are neither: each is paid once for all tensors of a part of the step. So they
// are left out at first, which gives a bound, and then branched on: for a start
// that the plan found has, either it is paid for, or the plan does without
// (Land, Doig: An automatic method of solving discrete programming problems,
// 1960). Branches whose bound is not below a plan that was found by more than
// the gap asked for are left: estimates of time are not that good. So are first
// those whose bound is above a target between the bound of all and the best
// plan known; the target is raised until it is not below that plan (Korf:
// Depth-first iterative-deepening, 1985).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_CHEAPESTPLAN_H
#define SHARDC_AUTOSHARDING_CHEAPESTPLAN_H

#include "shardc/AutoSharding/CostTerms.h"
#include "shardc/AutoSharding/ShardingSearch.h"

namespace shardc {

struct CheapestPlan {
  /// The options of each op of the problem; empty if none was found.
  std::vector<int> options;
  CostTerms price;
  double cost = unreachable;
  /// No plan costs less. Equal to `cost` by bytes, and less by the gap at most
  /// by time, unless the search was cut off; unreachable if there is no plan.
  double lowerBound = unreachable;
};

/// How far the search for a plan goes.
struct PlanLimits {
  /// By time a plan is taken that costs at most this part more than the least,
  /// as solvers of integer programs do by default; a millionth at least.
  double gap = 1e-4;
  /// Every branch is a search among all options of the problem: when all
  /// branches together have looked at so many of them, which is 8 branches at
  /// least, the best plan so far is taken. Seconds.
  int64_t maxBranchOptions = 1'000'000;
  /// As in SearchLimits, for the first search; branches look at a part of that
  /// each, and at twice as much together.
  size_t maxWork = defaultSearchWork;
  bool becomesNarrow = true;
  /// Plans that cost as much or more are none.
  double upper = unreachable;
};

/// The cheapest plan of `problem`, whose starts cost what `prices` says. Leaves
/// nothing forbidden.
CheapestPlan findCheapestPlan(SearchProblem &problem,
                              const CollectiveCosts &prices,
                              const PlanLimits &limits = {});

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_CHEAPESTPLAN_H
