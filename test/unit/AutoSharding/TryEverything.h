//===- TryEverything.h - All plans of a small problem -----------*- C++ -*-===//
//
// What plans cost, from the definition: every combination of options, every
// tensor by its cheapest tree.
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
    product *= op.options->size();
  return product;
}

/// Calls `visit` with every combination of options and what it costs.
inline void
forEachPlan(SearchProblem &problem,
            llvm::function_ref<void(const std::vector<int> &, double)> visit) {
  std::vector<int> options(problem.ops.size());
  std::vector<int> made(problem.values.size());
  std::vector<std::vector<int>> wanted(problem.values.size());
  std::map<DistanceTable *, MulticastTrees> trees;
  auto price = [&]() {
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
      visit(options, cost + price());
      return;
    }
    const SearchOp &op = problem.ops[index];
    for (auto [number, option] : llvm::enumerate(*op.options)) {
      options[index] = number;
      for (auto [port, value] : llvm::enumerate(op.ports)) {
        if (static_cast<int>(port) < op.numOperands)
          wanted[value].push_back(option.layouts[port]);
        else
          made[value] = option.layouts[port];
      }
      self(self, index + 1, cost + option.cost);
      for (auto [port, value] : llvm::enumerate(op.ports))
        if (static_cast<int>(port) < op.numOperands)
          wanted[value].pop_back();
    }
  };
  choose(choose, 0, 0);
}

/// By options what every plan costs that there is.
using Costs = std::map<std::vector<int>, double>;

/// Of all plans that there are, starts left out.
inline Costs getCosts(SearchProblem &problem) {
  Costs costs;
  forEachPlan(problem, [&](const std::vector<int> &options, double cost) {
    if (cost < unreachable)
      costs[options] = cost;
  });
  return costs;
}

/// The least over all combinations of options.
inline double tryEverything(SearchProblem &problem) {
  double best = unreachable;
  forEachPlan(problem, [&](const std::vector<int> &, double cost) {
    best = std::min(best, cost);
  });
  return best;
}

/// From now on has no other options than `options`.
inline void pin(SearchProblem &problem, llvm::ArrayRef<int> options) {
  for (auto [op, option] : llvm::zip_equal(problem.ops, options)) {
    SearchOption chosen = (*op.options)[option];
    op.options = std::make_shared<const std::vector<SearchOption>>(1, chosen);
  }
}

/// The least over all sets of collectives that may be started, each paid for.
inline double tryAllStarts(SearchProblem &problem, const ShardingGraph &graph,
                           const CollectiveCosts &prices) {
  std::set<Part> parts;
  for (Part part : getPartsMadeIn(graph))
    parts.insert(part);
  AxisSet all = (AxisSet(1) << graph.mesh.getNumAxes()) - 1;
  std::vector<CollectiveStart> kinds;
  for (Part part : parts)
    for (unsigned kind = 0; kind < numCollectiveKinds; ++kind)
      for (AxisSet axes = all; axes; axes = (axes - 1) & all)
        if (CollectiveCosts::Kind start = {*symbolizeCollectiveKind(kind),
                                           axes};
            !prices.forbidden.count(start))
          kinds.push_back({part, start});
  // In the order of what the starts cost: once that alone, with all else for
  // the least there is, is no better, no further one is.
  std::vector<std::pair<double, std::set<CollectiveStart>>> subsets;
  for (unsigned subset = 0; subset < 1u << kinds.size(); ++subset) {
    std::set<CollectiveStart> paid;
    for (auto [index, kind] : llvm::enumerate(kinds))
      if (subset >> index & 1)
        paid.insert(kind);
    subsets.emplace_back(getStartCost(paid, prices), std::move(paid));
  }
  llvm::sort(subsets);
  problem.forbid({});
  double least = tryEverything(problem), best = unreachable;
  for (const auto &[cost, paid] : subsets) {
    if (least + cost >= best)
      break;
    std::set<CollectiveStart> others(kinds.begin(), kinds.end());
    for (const CollectiveStart &start : paid)
      others.erase(start);
    problem.forbid(others);
    best = std::min(best, tryEverything(problem) + cost);
  }
  return best;
}

} // namespace shardc

#endif // SHARDC_TEST_UNIT_ANALYSIS_TRYEVERYTHING_H
