//===- TryEverything.h - All plans of a small problem -----------*- C++ -*-===//
//
// Costs of plans by definition: every combination of strategies, and the
// cheapest tree of every tensor.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TEST_UNIT_ANALYSIS_TRYEVERYTHING_H
#define SHARDC_TEST_UNIT_ANALYSIS_TRYEVERYTHING_H

#include "shardc/AutoSharding/SearchProblem.h"
#include "shardc/Reshard/MulticastTrees.h"

namespace shardc {

inline double numCombinations(const SearchProblem &problem) {
  double product = 1;
  for (const SearchOp &op : problem.ops)
    product *= op.strategies->size();
  return product;
}

/// Calls `visit` with every combination of strategies and its cost.
inline void
forEachPlan(SearchProblem &problem,
            llvm::function_ref<void(const std::vector<int> &, double)> visit) {
  std::vector<int> strategies(problem.ops.size());
  std::vector<int> made(problem.values.size());
  std::vector<std::vector<int>> wanted(problem.values.size());
  std::map<DistanceTable *, MulticastTrees> trees;
  auto getDeliveryCost = [&]() {
    double cost = 0;
    for (size_t value = 0; value < problem.values.size(); ++value) {
      std::set<int> distinct(wanted[value].begin(), wanted[value].end());
      if (distinct.empty())
        continue;
      DistanceTable *table = problem.values[value].table;
      std::vector<int> wanted(distinct.begin(), distinct.end());
      cost += trees.try_emplace(table, *table)
                  .first->second.getCosts(wanted)[made[value]]
                  .cost;
    }
    return cost;
  };
  auto choose = [&](auto &&self, size_t index, double cost) -> void {
    if (index == problem.ops.size()) {
      visit(strategies, cost + getDeliveryCost());
      return;
    }
    const SearchOp &op = problem.ops[index];
    for (auto [number, strategy] : llvm::enumerate(*op.strategies)) {
      strategies[index] = number;
      for (auto [port, value] : llvm::enumerate(op.ports)) {
        if (static_cast<int>(port) < op.numOperands)
          wanted[value].push_back(strategy.layouts[port]);
        else
          made[value] = strategy.layouts[port];
      }
      self(self, index + 1, cost + strategy.cost);
      for (auto [port, value] : llvm::enumerate(op.ports))
        if (static_cast<int>(port) < op.numOperands)
          wanted[value].pop_back();
    }
  };
  choose(choose, 0, 0);
}

/// The cost of every plan, by its strategies.
using Costs = std::map<std::vector<int>, double>;

/// The costs of all plans, without latencies.
inline Costs getCosts(SearchProblem &problem) {
  Costs costs;
  forEachPlan(problem, [&](const std::vector<int> &strategies, double cost) {
    if (cost < unreachable)
      costs[strategies] = cost;
  });
  return costs;
}

/// The least cost of all combinations of strategies.
inline double tryEverything(SearchProblem &problem) {
  double best = unreachable;
  forEachPlan(problem, [&](const std::vector<int> &, double cost) {
    best = std::min(best, cost);
  });
  return best;
}

/// Restricts `problem` to `strategies`.
inline void pin(SearchProblem &problem, llvm::ArrayRef<int> strategies) {
  for (auto [op, strategy] : llvm::zip_equal(problem.ops, strategies)) {
    SearchStrategy chosen = (*op.strategies)[strategy];
    op.strategies =
        std::make_shared<const std::vector<SearchStrategy>>(1, chosen);
  }
}

/// The least cost over all sets of permitted collectives, each charged its
/// latency.
inline double tryAllLatencies(SearchProblem &problem,
                              const ShardingGraph &graph,
                              const CollectiveCosts &collectiveCosts) {
  std::set<Part> parts;
  for (Part part : getPartsMadeIn(graph))
    parts.insert(part);
  AxisSet all = (AxisSet(1) << graph.mesh.getNumAxes()) - 1;
  std::vector<MergedCollective> kinds;
  for (Part part : parts)
    for (unsigned kind = 0; kind < numCollectiveKinds; ++kind)
      for (AxisSet axes = all; axes; axes = (axes - 1) & all)
        if (CollectiveCosts::Kind start = {*symbolizeCollectiveKind(kind),
                                           axes};
            !collectiveCosts.forbidden.count(start))
          kinds.push_back({part, start});
  // In the order of their latencies: once these, plus the least cost of all
  // else, are no better, no later set is.
  std::vector<std::pair<double, std::set<MergedCollective>>> subsets;
  for (unsigned subset = 0; subset < 1u << kinds.size(); ++subset) {
    std::set<MergedCollective> paid;
    for (auto [index, kind] : llvm::enumerate(kinds))
      if (subset >> index & 1)
        paid.insert(kind);
    subsets.emplace_back(getLatencyCost(paid, collectiveCosts),
                         std::move(paid));
  }
  llvm::sort(subsets);
  problem.forbid({});
  double least = tryEverything(problem), best = unreachable;
  for (const auto &[cost, paid] : subsets) {
    if (least + cost >= best)
      break;
    std::set<MergedCollective> others(kinds.begin(), kinds.end());
    for (const MergedCollective &start : paid)
      others.erase(start);
    problem.forbid(others);
    best = std::min(best, tryEverything(problem) + cost);
  }
  return best;
}

} // namespace shardc

#endif // SHARDC_TEST_UNIT_ANALYSIS_TRYEVERYTHING_H
