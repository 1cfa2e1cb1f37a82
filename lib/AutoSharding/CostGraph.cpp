//===- CostGraph.cpp - The graph of layouts in flat arrays ----------------===//

#include "CostGraph.h"

using namespace llvm;
using namespace shardc;

CostGraph::CostGraph(DistanceTable &table, const SearchOptions &options)
    : options(&options) {
  LayoutGraph &graph = table.getGraph();
  graph.enumerate();
  int size = graph.getNumLayouts();
  for (int id = 0; id < size; ++id) {
    layouts.push_back(id);
    nodeOf.push_back(id);
  }
  EdgeLists out(size);
  for (int id = 0; id < size; ++id) {
    ArrayRef<double> costs = table.getEdgeCosts(id);
    out[id].reserve(costs.size());
    for (auto [cost, edge] : llvm::zip_equal(costs, graph.getEdges(id)))
      if (cost < unreachable)
        out[id].push_back({edge.to, cost});
  }
  // Remove, one by one, edges that two others replace at no higher cost.
  // Distances stay the same.
  LayoutCosts direct(size, unreachable);
  for (std::vector<Edge> &edges : out) {
    for (Edge edge : edges)
      direct[edge.to] = std::min(direct[edge.to], edge.cost);
    for (Edge first : edges) {
      if (first.cost > direct[first.to])
        continue;
      for (Edge second : out[first.to]) {
        double &cost = direct[second.to];
        if (second.to != first.to &&
            first.cost + second.cost <= cost * (1 + costTolerance) &&
            cost < unreachable)
          cost = -1;
      }
    }
    llvm::erase_if(edges, [&](const Edge &edge) {
      return edge.cost > std::exchange(direct[edge.to], unreachable);
    });
  }
  setEdges(out);
}

CostGraph::CostGraph(CostGraph &whole, ArrayRef<int> nodes, bool isClosed)
    : options(whole.options), nodeOf(whole.nodeOf.size(), -1),
      closed(isClosed && whole.closed) {
  std::vector<int> place(whole.size(), -1);
  for (auto [index, node] : llvm::enumerate(nodes)) {
    int layout = whole.layouts[node];
    layouts.push_back(layout);
    nodeOf[layout] = place[node] = index;
  }
  if (isClosed && !whole.isMatrix) {
    EdgeLists out(size());
    for (auto [index, node] : llvm::enumerate(nodes))
      whole.forward.forEach(node, [&, index = index](int to, double cost) {
        if (place[to] >= 0)
          out[index].push_back({place[to], cost});
      });
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

void CostGraph::Edges::set(const EdgeLists &lists) {
  for (int id = 0, end = lists.size(); id < end; ++id)
    for (bool isHigher : {false, true}) {
      start.push_back(list.size());
      int number = 0;
      for (Edge edge : lists[id]) {
        if (edge.to == id || (edge.to > id) != isHigher)
          continue;
        int place = number++ % 4;
        if (place == 0)
          list.push_back(
              {{id, id, id, id},
               {unreachable, unreachable, unreachable, unreachable}});
        list.back().to[place] = edge.to;
        list.back().cost[place] = edge.cost;
      }
    }
  start.push_back(list.size());
}

void CostGraph::setEdges(const EdgeLists &out) {
  EdgeLists into(size());
  std::vector<int> numInto(size());
  for (const std::vector<Edge> &edges : out)
    for (Edge edge : edges)
      ++numInto[edge.to];
  for (auto [edges, number] : llvm::zip_equal(into, numInto))
    edges.reserve(number);
  for (auto [id, edges] : llvm::enumerate(out))
    for (Edge edge : edges)
      into[edge.to].push_back({static_cast<int>(id), edge.cost});
  forward.set(out);
  backward.set(into);
  from.resize(size());
  to.resize(size());
  if (layouts.size() <= options->graphs.maxMatrix) {
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

ArrayRef<double> CostGraph::getDistances(int id, bool isBackward) {
  LayoutCosts &costs = (isBackward ? to : from)[id];
  if (costs.empty()) {
    costs.assign(size(), unreachable);
    costs[id] = 0;
    expand(costs, isBackward);
  }
  return costs;
}

void CostGraph::relax(LayoutCosts &costs, bool isBackward) {
  if (!isMatrix)
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

/// Calls `use` with the nodes in ascending or descending order.
template <typename Use>
static void forEachNode(int size, bool descends, Use use) {
  if (descends)
    for (int id = size - 1; id >= 0; --id)
      use(id);
  else
    for (int id = 0; id < size; ++id)
      use(id);
}

void CostGraph::expand(LayoutCosts &costs, bool isBackward) {
  isLowered.resize(costs.size());
  double *const least = costs.data();
  char *const lowered = isLowered.data();
  const int numNodes = size();
  // Relax all edges to higher nodes, in ascending order, then all edges to
  // lower ones: few shortest paths change direction more often (Yen, 1970).
  // Most begin upwards, since layouts are numbered along paths from partial
  // sums.
  const Edges &into = isBackward ? forward : backward;
  const Four *fours = into.list.data();
  for (bool descends : {isBackward, !isBackward}) {
    const int *starts = into.start.data() + descends;
    forEachNode(numNodes, descends, [=](int id) {
      // Four independent minima, since each depends on the one before.
      double first = least[id], second = first, third = first, fourth = first;
      const Four *last = fours + starts[2 * id + 1];
      for (const Four *four = fours + starts[2 * id]; four != last; ++four) {
        first = std::min(first, least[four->to[0]] + four->cost[0]);
        second = std::min(second, least[four->to[1]] + four->cost[1]);
        third = std::min(third, least[four->to[2]] + four->cost[2]);
        fourth = std::min(fourth, least[four->to[3]] + four->cost[3]);
      }
      double cost = std::min(std::min(first, second), std::min(third, fourth));
      lowered[id] = cost < least[id];
      least[id] = cost;
    });
  }
  // Nodes lowered in the last pass may lower nodes on either side.
  constexpr char upwards = 1, downwards = 2;
  for (int id = 0; id < numNodes; ++id)
    lowered[id] *= isBackward ? downwards : upwards;
  const Edges &out = isBackward ? backward : forward;
  fours = out.list.data();
  bool isChanged = true;
  for (bool descends = isBackward; isChanged; descends = !descends) {
    const char way = descends ? downwards : upwards;
    const int *starts = out.start.data() + !descends;
    isChanged = false;
    forEachNode(numNodes, descends, [=, &isChanged](int id) {
      if (!(lowered[id] & way))
        return;
      lowered[id] &= ~way;
      const double from = least[id];
      const Four *last = fours + starts[2 * id + 1];
      for (const Four *four = fours + starts[2 * id]; four != last; ++four)
        for (int index = 0; index < 4; ++index)
          if (double cost = from + four->cost[index];
              cost < least[four->to[index]]) {
            least[four->to[index]] = cost;
            lowered[four->to[index]] = upwards | downwards;
            isChanged = true;
          }
    });
  }
}

/// Marks the nodes reachable from `sources`.
void CostGraph::mark(ArrayRef<int> sources, bool isBackward,
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
    edges.forEach(node, [&](int to, double) { visit(to); });
  }
}

std::vector<int> CostGraph::getBetween(ArrayRef<int> sources,
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

CostGraph &CostGraphs::getWhole(DistanceTable *table) {
  std::unique_ptr<CostGraph> &graph = wholes[table];
  if (!graph)
    graph = std::make_unique<CostGraph>(*table, options);
  return *graph;
}

CostGraph &CostGraphs::getPart(DistanceTable *table, CostGraph &whole,
                               ArrayRef<int> nodes, bool isClosed) {
  if (static_cast<int>(nodes.size()) == whole.size())
    return whole;
  std::vector<int> layouts;
  layouts.reserve(nodes.size());
  for (int node : nodes)
    layouts.push_back(whole.getLayouts()[node]);
  std::unique_ptr<CostGraph> &graph = parts[{table, std::move(layouts)}];
  if (!graph)
    graph = std::make_unique<CostGraph>(whole, nodes, isClosed);
  return *graph;
}
