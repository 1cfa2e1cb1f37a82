//===- CostTerms.h - The terms of the cost of a plan ------------*- C++ -*-===//
//
// The cost that `--partition=cheapest` minimises, for any decisions. Its terms
// are the work of every op per device, the wire traffic of the reshards between
// ops, and one latency per kind of collective, axis set and part of the step.
// Plain functions; thread-safe.
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
  std::vector<ShardingStrategy> strategies;
  std::vector<Layout> layouts;
};

struct CostTerms {
  double ops = 0;
  double wire = 0;
  /// The collectives in use, and the sum of their latencies.
  std::set<MergedCollective> collectives;
  double latency = 0;
  /// The cost of memory, if it has a price (see MemoryConstrainedSearch.h).
  double memory = 0;

  double getCost() const { return ops + wire + latency; }
  double getTotal() const { return getCost() + memory; }
};

/// The cost of what `op` itself sends in all of its runs: rows that lie one on
/// each device (see Factor::oneEach).
double getOwnWire(const ShardingGraph &graph, const GraphOp &op,
                  const ShardingStrategy &strategy,
                  const CollectiveCosts &collectiveCosts);

/// The cost of the ops from `first` to before `end` of `graph`. `planner`
/// decides the reshards.
CostTerms getCostTerms(const ShardingGraph &graph, int first, int end,
                       const PlanDecisions &decisions, ReshardPlanner &planner,
                       const CollectiveCosts &collectiveCosts);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_COSTTERMS_H
