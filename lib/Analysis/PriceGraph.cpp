//===- PriceGraph.cpp - The graph of layouts in flat arrays ---------------===//

#include "PriceGraph.h"

using namespace mlir;
using namespace shardc;

/// A distance looked up costs about this part of a layout expanded.
constexpr size_t lookupsPerExpansion = 100;

/// Savings smaller than this part of a price are none.
constexpr double tolerance = 1e-12;

PriceGraph::PriceGraph(DistanceTable &table) {
  LayoutGraph &graph = table.getGraph();
  graph.enumerate();
  int size = graph.getNumLayouts();
  std::vector<std::vector<Edge>> out(size), into(size);
  for (int id = 0; id < size; ++id) {
    ArrayRef<double> prices = table.getPrices(id);
    for (auto [price, edge] : llvm::zip_equal(prices, graph.getEdges(id)))
      if (price < unreachable)
        out[id].push_back({edge.to, price});
  }
  // Edges that two others replace at their price are left out, one by one, so
  // that distances stay.
  LayoutCosts direct(size, unreachable);
  for (std::vector<Edge> &edges : out) {
    for (Edge edge : edges)
      direct[edge.to] = std::min(direct[edge.to], edge.cost);
    for (Edge first : edges) {
      if (first.cost > direct[first.to])
        continue;
      for (Edge second : out[first.to]) {
        double &price = direct[second.to];
        if (second.to != first.to &&
            first.cost + second.cost <= price * (1 + tolerance) &&
            price < unreachable)
          price = -1;
      }
    }
    std::vector<Edge> kept;
    for (Edge edge : edges) {
      if (edge.cost <= direct[edge.to])
        kept.push_back(edge);
      direct[edge.to] = unreachable;
    }
    edges = std::move(kept);
  }
  auto flatten = [](const std::vector<std::vector<Edge>> &lists, Edges &flat) {
    for (const std::vector<Edge> &list : lists) {
      flat.start.push_back(flat.list.size());
      llvm::append_range(flat.list, list);
    }
    flat.start.push_back(flat.list.size());
  };
  for (auto [id, edges] : llvm::enumerate(out))
    for (Edge edge : edges)
      into[edge.to].push_back({static_cast<int>(id), edge.cost});
  flatten(out, forward);
  flatten(into, backward);
  from.resize(size);
  to.resize(size);
}

const LayoutCosts &PriceGraph::getDistances(int id, bool isBackward) {
  LayoutCosts &costs = (isBackward ? to : from)[id];
  if (costs.empty()) {
    costs.assign(size(), unreachable);
    costs[id] = 0;
    expand(costs, isBackward ? backward : forward);
  }
  return costs;
}

void PriceGraph::relax(LayoutCosts &costs, bool isBackward) {
  size_t numKnown = costs.size() - llvm::count(costs, unreachable);
  if (numKnown > lookupsPerExpansion)
    return expand(costs, isBackward ? backward : forward);
  LayoutCosts best(costs.size(), unreachable);
  for (auto [id, cost] : llvm::enumerate(costs)) {
    if (cost == unreachable)
      continue;
    const LayoutCosts &distances = getDistances(id, isBackward);
    for (size_t other = 0; other < best.size(); ++other)
      best[other] = std::min(best[other], cost + distances[other]);
  }
  costs = std::move(best);
}

void PriceGraph::relaxAt(LayoutCosts &costs, bool isBackward,
                         ArrayRef<int> targets) {
  if (targets.size() > lookupsPerExpansion)
    return relax(costs, isBackward);
  LayoutCosts best(costs.size(), unreachable);
  for (int target : targets) {
    const LayoutCosts &distances = getDistances(target, !isBackward);
    double &least = best[target];
    for (size_t other = 0; other < costs.size(); ++other)
      least = std::min(least, costs[other] + distances[other]);
  }
  costs = std::move(best);
}

void PriceGraph::expand(LayoutCosts &costs, const Edges &edges) {
  // Most costs are the least already: a queue without order beats a heap.
  std::vector<bool> isQueued(costs.size());
  std::vector<int> queue;
  for (auto [id, cost] : llvm::enumerate(costs))
    if ((isQueued[id] = cost < unreachable))
      queue.push_back(id);
  std::vector<int> next;
  while (!queue.empty()) {
    next.clear();
    for (int id : queue) {
      isQueued[id] = false;
      double cost = costs[id];
      for (int edge = edges.start[id]; edge < edges.start[id + 1]; ++edge) {
        auto [to, price] = edges.list[edge];
        if (cost + price >= costs[to])
          continue;
        costs[to] = cost + price;
        if (!isQueued[to]) {
          isQueued[to] = true;
          next.push_back(to);
        }
      }
    }
    std::swap(queue, next);
  }
}
