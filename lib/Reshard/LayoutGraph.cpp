//===- LayoutGraph.cpp - Shortest paths between layouts -------------------===//
//
// Dijkstra, E. W.: A note on two problems in connexion with graphs (1959).
//
//===----------------------------------------------------------------------===//

#include "shardc/Reshard/LayoutGraph.h"

#include <cmath>
#include <queue>

using namespace llvm;
using namespace shardc;

ArrayRef<ReshardStep> LayoutSteps::getFrom(const Layout &layout,
                                           const LayoutScope &scope) {
  ByLayout &steps = known[{scope.axes, scope.allowsStrided, scope.bundles}];
  auto [it, isNew] = steps.try_emplace(layout);
  if (isNew)
    it->second = getStepsFrom(layout, scope, mesh);
  return it->second;
}

int LayoutGraph::getId(const Layout &layout) {
  auto [it, isNew] = ids.try_emplace(layout, layouts.size());
  if (isNew) {
    layouts.push_back(&it->first);
    edges.emplace_back();
  }
  return it->second;
}

ArrayRef<LayoutGraph::Edge> LayoutGraph::getEdges(int id) {
  if (!edges[id]) {
    std::vector<Edge> found;
    ArrayRef<ReshardStep> all = steps->getFrom(*layouts[id], scope);
    found.reserve(all.size());
    for (const ReshardStep &step : all)
      found.push_back({&step, getId(step.after)});
    edges[id] = std::move(found);
  }
  return *edges[id];
}

void LayoutGraph::enumerate() {
  if (isEnumerated)
    return;
  // Partial sums over all axes are a source from which every layout is reached.
  Layout sums(rank);
  sums.unreduced = scope.axes;
  getId(sums);
  for (int id = 0; id < getNumLayouts(); ++id)
    (void)getEdges(id);
  isEnumerated = true;
}

ArrayRef<double> EdgeBytes::get(int id) {
  if (static_cast<int>(known.size()) <= id)
    known.resize(id + 1);
  if (!known[id]) {
    std::vector<double> list;
    ArrayRef<LayoutGraph::Edge> edges = graph.getEdges(id);
    list.reserve(edges.size());
    for (const LayoutGraph::Edge &edge : edges)
      list.push_back(getStepBytes(*edge.step, graph.getLayout(id), shape,
                                  elementBytes, graph.getMesh())
                         .value_or(unreachable));
    known[id] = std::move(list);
  }
  return *known[id];
}

bool Distance::isCloserThan(const Distance &other) const {
  if (cost < other.cost * (1 - costTolerance) || other.cost == unreachable)
    return cost < other.cost;
  return cost <= other.cost * (1 + costTolerance) && numSteps < other.numSteps;
}

double DistanceTable::getStepCost(const ReshardStep &step, double moved) const {
  if (step.kind == ReshardStep::Slice || moved == unreachable)
    return moved;
  CollectiveKind kind = getCollectiveKind(step.kind);
  AxisSet axes = getAxisSet(step.axes);
  if (!collectiveCosts.allows(kind, axes))
    return unreachable;
  return collectiveCosts.getWire(axes, moved);
}

ArrayRef<double> DistanceTable::getEdgeCosts(int id) {
  while (static_cast<int>(costs.size()) <= id)
    costs.emplace_back();
  if (!costs[id]) {
    std::vector<double> list;
    ArrayRef<double> allMoved = bytes.get(id);
    list.reserve(allMoved.size());
    for (auto [edge, moved] : llvm::zip_equal(graph.getEdges(id), allMoved))
      list.push_back(getStepCost(*edge.step, moved));
    costs[id] = std::move(list);
  }
  return *costs[id];
}

void DistanceTable::buildReverse() {
  graph.enumerate();
  if (!reverse.empty())
    return;
  reverse.resize(graph.getNumLayouts());
  for (int id = 0; id < graph.getNumLayouts(); ++id)
    for (auto [index, edge] : llvm::enumerate(graph.getEdges(id)))
      reverse[edge.to].emplace_back(id, index);
}

void DistanceTable::relax(std::vector<Distance> &distances, bool backward,
                          int last, int64_t maxEdges) {
  if (backward)
    buildReverse();
  // (cost, steps, layout): the order of expansion does not depend on anything
  // but the layouts' numbers.
  using Entry = std::tuple<double, int, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  for (auto [id, distance] : llvm::enumerate(distances))
    if (distance.cost < unreachable)
      queue.emplace(distance.cost, distance.numSteps, id);
  std::vector<bool> isDone;
  int64_t numEdges = 0;
  while (!queue.empty()) {
    double cost;
    int numSteps, id;
    std::tie(cost, numSteps, id) = queue.top();
    queue.pop();
    if (static_cast<int>(isDone.size()) <= id)
      isDone.resize(id + 1);
    if (isDone[id])
      continue;
    isDone[id] = true;
    if (id == last || (maxEdges >= 0 && numEdges >= maxEdges))
      break;
    auto visit = [&](int neighbour, double edgeCost, int edge) {
      ++numEdges;
      if (edgeCost == unreachable)
        return;
      if (static_cast<int>(distances.size()) <= neighbour)
        distances.resize(neighbour + 1);
      Distance next{cost + edgeCost, numSteps + 1, id, edge};
      if (!next.isCloserThan(distances[neighbour]))
        return;
      distances[neighbour] = next;
      queue.emplace(next.cost, next.numSteps, neighbour);
    };
    if (backward) {
      for (auto [source, edge] : reverse[id])
        visit(source, getEdgeCosts(source)[edge], edge);
    } else {
      ArrayRef<double> edgeCosts = getEdgeCosts(id);
      for (auto [index, edge] : llvm::enumerate(graph.getEdges(id)))
        visit(edge.to, edgeCosts[index], index);
    }
  }
  if (static_cast<int>(distances.size()) < graph.getNumLayouts())
    distances.resize(graph.getNumLayouts());
}

const std::vector<Distance> &DistanceTable::getFrom(int id) {
  auto [it, isNew] = from.try_emplace(id);
  if (isNew) {
    it->second.resize(id + 1);
    it->second[id].cost = 0;
    relax(it->second, /*backward=*/false);
  }
  return it->second;
}

const std::vector<Distance> &DistanceTable::getTo(int id) {
  auto [it, isNew] = to.try_emplace(id);
  if (isNew) {
    it->second.resize(id + 1);
    it->second[id].cost = 0;
    relax(it->second, /*backward=*/true);
  }
  return it->second;
}

SmallVector<ReshardStep, 2> DistanceTable::getPath(int source, int target) {
  return getPath(getFrom(source), source, target);
}

SmallVector<ReshardStep, 2>
DistanceTable::getPath(const std::vector<Distance> &distances, int source,
                       int target) {
  SmallVector<ReshardStep, 2> steps;
  for (int id = target; id != source; id = distances[id].next) {
    const Distance &distance = distances[id];
    const LayoutGraph::Edge &edge =
        graph.getEdges(distance.next)[distance.edge];
    double moved = bytes.get(distance.next)[distance.edge];
    steps.push_back(*edge.step);
    steps.back().wireBytes = static_cast<int64_t>(std::ceil(moved - 1e-6));
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}
