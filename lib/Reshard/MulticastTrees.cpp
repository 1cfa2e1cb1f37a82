//===- MulticastTrees.cpp - One value in several layouts ------------------===//

#include "shardc/Reshard/MulticastTrees.h"

using namespace llvm;
using namespace shardc;

MulticastTrees::Key MulticastTrees::select(ArrayRef<int> wanted,
                                           unsigned subset) {
  Key key;
  for (auto [index, layout] : llvm::enumerate(wanted))
    if (subset >> index & 1)
      key.push_back(layout);
  return key;
}

const std::vector<Distance> &MulticastTrees::getCosts(ArrayRef<int> wanted) {
  if (wanted.size() == 1)
    return table.getTo(wanted[0]);
  auto [it, isNew] = costs.try_emplace(wanted.vec());
  if (!isNew)
    return it->second;
  // The cheapest tree from a layout: a path to the layout where it forks.
  std::vector<Distance> best;
  unsigned all = (1u << wanted.size()) - 1;
  // Each split into two subsets once: the first layout is in the first one.
  for (unsigned part = 1; part < all; part += 2) {
    const std::vector<Distance> &first = getCosts(select(wanted, part));
    const std::vector<Distance> &second = getCosts(select(wanted, all & ~part));
    best.resize(first.size());
    for (size_t id = 0; id < first.size(); ++id) {
      Distance fork;
      fork.cost = first[id].cost + second[id].cost;
      fork.numSteps = first[id].numSteps + second[id].numSteps;
      if (fork.isCloserThan(best[id]))
        best[id] = fork;
    }
  }
  table.relax(best, /*backward=*/true);
  return it->second = std::move(best);
}

unsigned MulticastTrees::findSplit(ArrayRef<int> wanted, int id) {
  unsigned all = (1u << wanted.size()) - 1, split = 0;
  Distance best;
  for (unsigned part = 1; part < all; part += 2) {
    const Distance &first = getCosts(select(wanted, part))[id];
    const Distance &second = getCosts(select(wanted, all & ~part))[id];
    Distance fork;
    fork.cost = first.cost + second.cost;
    fork.numSteps = first.numSteps + second.numSteps;
    if (split == 0 || fork.isCloserThan(best)) {
      best = fork;
      split = part;
    }
  }
  return split;
}

void MulticastTrees::grow(int id, int node, ArrayRef<int> wanted,
                          std::vector<Node> &nodes) {
  // The path to the layout where the tree ends or forks.
  int place = id;
  if (wanted.size() == 1) {
    place = wanted[0];
  } else {
    const std::vector<Distance> &distances = getCosts(wanted);
    while (distances[place].next >= 0)
      place = distances[place].next;
  }
  if (place != id) {
    nodes.push_back({place, node});
    node = nodes.size() - 1;
  }
  if (wanted.size() == 1)
    return;
  unsigned all = (1u << wanted.size()) - 1;
  unsigned part = findSplit(wanted, place);
  grow(place, node, select(wanted, part), nodes);
  grow(place, node, select(wanted, all & ~part), nodes);
}

std::vector<MulticastTrees::Node>
MulticastTrees::getTree(int start, ArrayRef<int> wanted) {
  std::vector<Node> nodes;
  if (wanted.empty())
    return nodes;
  if (static_cast<int>(wanted.size()) <= maxDeliveredLayouts) {
    grow(start, -1, wanted, nodes);
    return nodes;
  }
  for (int layout : wanted) {
    if (layout == start)
      continue;
    int source = -1;
    double best = table.get(start, layout);
    for (auto [index, node] : llvm::enumerate(nodes))
      if (double cost = table.get(node.layout, layout); cost < best) {
        best = cost;
        source = index;
      }
    nodes.push_back({layout, source});
  }
  return nodes;
}
