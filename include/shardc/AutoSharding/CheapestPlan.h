//===- CheapestPlan.h - Branch and bound over latencies ---------*- C++ -*-===//
//
// The search of `--partition=cheapest` for one function: branch and bound over
// the latencies of collectives (docs/AutoSharding.md). ShardingSearch.h solves
// problems whose costs belong to single ops and tensors. A latency does not: it
// is charged once for all tensors of a part of the step. So the root leaves
// latencies out, which gives a lower bound. It then branches on a latency of
// the plan found (Land, Doig: An automatic method of solving discrete
// programming problems, 1960): one branch charges the latency, the other
// forbids the collective.
//
// Branches whose lower bound is above the best plan, less the gap, are
// discarded. Branches above a target between the lower bound and the best plan
// are postponed; the target is raised until it reaches the best plan (Korf:
// Depth-first iterative-deepening, 1985).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_CHEAPESTPLAN_H
#define SHARDC_AUTOSHARDING_CHEAPESTPLAN_H

#include "shardc/AutoSharding/CostTerms.h"
#include "shardc/AutoSharding/ShardingSearch.h"

namespace shardc {

struct CheapestPlan {
  /// The strategy of each op of the problem; empty if none was found.
  std::vector<int> strategies;
  CostTerms terms;
  double cost = unreachable;
  /// A lower bound of all plans. Equal to `cost` by bytes, and lower by at most
  /// the gap by time, unless the search was cut off. Unreachable if there is no
  /// plan.
  double lowerBound = unreachable;
};

/// The cheapest plan of `problem`, with the latencies of `collectiveCosts`.
/// Ignores plans that cost `upper` or more. Afterwards `problem` permits all
/// collectives.
CheapestPlan findCheapestPlan(SearchProblem &problem,
                              const CollectiveCosts &collectiveCosts,
                              const SearchOptions &options = {},
                              double upper = unreachable);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_CHEAPESTPLAN_H
