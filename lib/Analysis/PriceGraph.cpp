//===- PriceGraph.cpp - The graph of layouts in flat arrays ---------------===//

#include "PriceGraph.h"

using namespace mlir;
using namespace shardc;

/// A distance looked up costs about this part of a layout expanded.
constexpr size_t lookupsPerExpansion = 20;

/// Savings smaller than this part of a price are none.
constexpr double tolerance = 1e-12;

PriceGraph::PriceGraph(DistanceTable &table) {
  LayoutGraph &graph = table.getGraph();
  graph.enumerate();
  int size = graph.getNumLayouts();
  for (int id = 0; id < size; ++id) {
    layouts.push_back(id);
    nodeOf.push_back(id);
  }
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
  setEdges(out);
}

PriceGraph::PriceGraph(PriceGraph &whole, ArrayRef<int> nodes, bool isClosed)
    : nodeOf(whole.nodeOf.size(), -1), closed(isClosed && whole.closed) {
  std::vector<int> place(whole.size(), -1);
  for (auto [index, node] : llvm::enumerate(nodes)) {
    int layout = whole.layouts[node];
    layouts.push_back(layout);
    nodeOf[layout] = place[node] = index;
  }
  if (isClosed && !whole.isMatrix) {
    EdgeLists out(size());
    for (auto [index, node] : llvm::enumerate(nodes))
      for (int edge = whole.forward.start[node];
           edge < whole.forward.start[node + 1]; ++edge)
        if (auto [to, cost] = whole.forward.list[edge]; place[to] >= 0)
          out[index].push_back({place[to], cost});
    setEdges(out);
    return;
  }
  isMatrix = true;
  from.assign(size(), LayoutCosts(size()));
  to.assign(size(), LayoutCosts(size()));
  for (auto [source, node] : llvm::enumerate(nodes)) {
    ArrayRef<double> row = whole.getDistances(node, /*isBackward=*/false);
    for (auto [target, other] : llvm::enumerate(nodes))
      from[source][target] = to[target][source] = row[other];
  }
}

void PriceGraph::setEdges(const EdgeLists &out) {
  auto flatten = [](const EdgeLists &lists, Edges &flat) {
    for (const std::vector<Edge> &list : lists) {
      flat.start.push_back(flat.list.size());
      llvm::append_range(flat.list, list);
    }
    flat.start.push_back(flat.list.size());
  };
  EdgeLists into(size());
  for (auto [id, edges] : llvm::enumerate(out))
    for (Edge edge : edges)
      into[edge.to].push_back({static_cast<int>(id), edge.cost});
  flatten(out, forward);
  flatten(into, backward);
  from.resize(size());
  to.resize(size());
  if (layouts.size() <= maxMatrix) {
    for (int id = 0; id < size(); ++id)
      (void)getDistances(id, /*isBackward=*/false);
    for (LayoutCosts &costs : to)
      costs.resize(size());
    for (int id = 0; id < size(); ++id)
      for (int other = 0; other < size(); ++other)
        to[other][id] = from[id][other];
    isMatrix = true;
  }
}

ArrayRef<double> PriceGraph::getDistances(int id, bool isBackward) {
  LayoutCosts &costs = (isBackward ? to : from)[id];
  if (costs.empty()) {
    costs.assign(size(), unreachable);
    costs[id] = 0;
    expand(costs, isBackward);
  }
  return costs;
}

void PriceGraph::relax(LayoutCosts &costs, bool isBackward) {
  size_t numKnown = costs.size() - llvm::count(costs, unreachable);
  if (!isMatrix && numKnown > lookupsPerExpansion)
    return expand(costs, isBackward);
  scratch.assign(costs.size(), unreachable);
  for (auto [id, cost] : llvm::enumerate(costs)) {
    if (cost == unreachable)
      continue;
    const double *distances = getDistances(id, isBackward).data();
    double *best = scratch.data();
    for (size_t other = 0, end = costs.size(); other < end; ++other)
      best[other] = std::min(best[other], cost + distances[other]);
  }
  std::swap(costs, scratch);
}

void PriceGraph::expand(LayoutCosts &costs, bool isBackward) {
  const Edges &into = isBackward ? forward : backward;
  const Edges &out = isBackward ? backward : forward;
  // Most ways lead from lower numbers to higher ones: layouts are found on ways
  // from partial sums.
  int end = size();
  auto forEachNode = [&](auto use) {
    for (int number = 0; number < end; ++number)
      use(isBackward ? end - 1 - number : number);
  };
  // Most costs are the least after one round, in which none waits for others:
  // that beats a heap.
  double *least = costs.data();
  isLowered.resize(costs.size());
  forEachNode([&](int id) {
    double cost = least[id];
    const Edge *last = into.list.data() + into.start[id + 1];
    for (const Edge *edge = into.list.data() + into.start[id]; edge != last;
         ++edge)
      cost = std::min(cost, least[edge->to] + edge->cost);
    isLowered[id] = cost < least[id];
    least[id] = cost;
  });
  // What was lowered may lower others.
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    forEachNode([&](int id) {
      if (!isLowered[id])
        return;
      isLowered[id] = false;
      isChanged = true;
      const Edge *last = out.list.data() + out.start[id + 1];
      for (const Edge *edge = out.list.data() + out.start[id]; edge != last;
           ++edge)
        if (double cost = least[id] + edge->cost; cost < least[edge->to]) {
          least[edge->to] = cost;
          isLowered[edge->to] = true;
        }
    });
  }
}

/// Marks what can be reached from `sources`.
void PriceGraph::mark(ArrayRef<int> sources, bool isBackward,
                      std::vector<bool> &isMarked) const {
  std::vector<int> found;
  auto visit = [&](int node) {
    if (!isMarked[node])
      found.push_back(node);
    isMarked[node] = true;
  };
  llvm::for_each(sources, visit);
  const Edges &edges = isBackward ? backward : forward;
  while (!found.empty()) {
    int node = found.back();
    found.pop_back();
    for (int edge = edges.start[node]; edge < edges.start[node + 1]; ++edge)
      visit(edges.list[edge].to);
  }
}

std::vector<int> PriceGraph::getBetween(ArrayRef<int> sources,
                                        ArrayRef<int> targets) const {
  std::vector<bool> isAfter(size()), isBefore(size());
  mark(sources, /*isBackward=*/false, isAfter);
  mark(targets, /*isBackward=*/true, isBefore);
  std::vector<int> nodes;
  for (int node = 0; node < size(); ++node)
    if (isAfter[node] && isBefore[node])
      nodes.push_back(node);
  return nodes;
}

PriceGraph &PriceGraphs::getWhole(DistanceTable *table) {
  std::unique_ptr<PriceGraph> &graph = wholes[table];
  if (!graph)
    graph = std::make_unique<PriceGraph>(*table);
  return *graph;
}

PriceGraph &PriceGraphs::getPart(DistanceTable *table, PriceGraph &whole,
                                 ArrayRef<int> nodes, bool isClosed) {
  if (static_cast<int>(nodes.size()) == whole.size())
    return whole;
  std::vector<int> layouts;
  for (int node : nodes)
    layouts.push_back(whole.getLayouts()[node]);
  std::unique_ptr<PriceGraph> &graph = parts[{table, std::move(layouts)}];
  if (!graph)
    graph = std::make_unique<PriceGraph>(whole, nodes, isClosed);
  return *graph;
}
