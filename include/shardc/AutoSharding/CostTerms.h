//===- CostTerms.h - What a plan costs by its objective ---------*- C++ -*-===//
//
// The cost that `--partition=cheapest` minimises, of any decisions: what every
// op takes a device, what the reshards between them send, and a start of each
// kind of collective for each part of the step. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_COSTTERMS_H
#define SHARDC_AUTOSHARDING_COSTTERMS_H

#include "shardc/Reshard/ReshardPlanner.h"
#include "shardc/Sharding/ShardingGraph.h"

namespace shardc {

/// How ops are sharded, and where values lie when they rest: by op and by value
/// of a graph.
struct PlanDecisions {
  std::vector<Assignment> assignments;
  std::vector<Layout> layouts;
};

struct CostTerms {
  double ops = 0;
  double wire = 0;
  /// The collectives that are started, and what starting each once costs.
  std::set<CollectiveStart> starts;
  double start = 0;
  /// Of memory, which only a search for a plan that needs less of it pays.
  double memory = 0;

  double getCost() const { return ops + wire + start; }
  double getTotal() const { return getCost() + memory; }
};

/// The price of the ops from `first` to before `end` of `graph`, where
/// `planner` says how values move.
CostTerms getCostTerms(const ShardingGraph &graph, int first, int end,
                       const PlanDecisions &decisions, ReshardPlanner &planner,
                       const CollectiveCosts &prices);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_COSTTERMS_H
