//===- TensorBound.cpp - The lower bound of one tensor --------------------===//

#include "TensorBound.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace shardc;

/// Lowers each cost to the sum of `lhs` and `rhs`.
static void lower(LayoutCosts &costs, const LayoutCosts &lhs,
                  const LayoutCosts &rhs) {
  for (size_t id = 0, end = costs.size(); id < end; ++id)
    costs[id] = std::min(costs[id], lhs[id] + rhs[id]);
}

void TensorBound::setUsers(int numUsers) {
  users.resize(numUsers);
  trees.resize(size_t(1) << numUsers);
  starts.resize(trees.size());
  isKnown.resize(trees.size());
  isStartKnown.resize(trees.size());
}

void TensorBound::setGraph(CostGraph &graph) {
  this->graph = &graph;
  std::fill(isKnown.begin(), isKnown.end(), false);
  std::fill(isStartKnown.begin(), isStartKnown.end(), false);
  isMadeKnown = false;
}

void TensorBound::setPort(int user, const std::vector<int> &nodes,
                          const LayoutCosts &costs) {
  Port &port = getPort(user);
  if (port.nodes != nodes) {
    port.nodes = nodes;
    forget(user);
  }
  setCosts(user, costs);
}

void TensorBound::setCosts(int user, const LayoutCosts &costs) {
  Port &port = getPort(user);
  if (port.costs == costs)
    return;
  port.costs = costs;
  forget(user);
}

void TensorBound::forget(int user) {
  if (user == producer) {
    std::fill(isStartKnown.begin(), isStartKnown.end(), false);
    isMadeKnown = false;
    return;
  }
  for (unsigned set = 0; set < isKnown.size(); ++set)
    (set >> user & 1 ? isKnown : isStartKnown)[set] = false;
}

void TensorBound::scatter(const Port &port, LayoutCosts &costs) const {
  costs.assign(graph->size(), unreachable);
  for (auto [node, cost] : llvm::zip_equal(port.nodes, port.costs))
    if (node >= 0)
      costs[node] = cost;
}

const LayoutCosts &TensorBound::getTree(unsigned set) {
  if (isKnown[set])
    return trees[set].get();
  LayoutCosts &costs = trees[set].renew();
  getForks(set, costs);
  if (set)
    graph->relax(costs, /*isBackward=*/true);
  isKnown[set] = true;
  return costs;
}

void TensorBound::getForks(unsigned set, LayoutCosts &costs) {
  if (llvm::isPowerOf2_32(set))
    return scatter(users[llvm::Log2_32(set)], costs);
  costs.assign(graph->size(), set ? unreachable : 0);
  for (unsigned one = (set - 1) & set; one; one = (one - 1) & set)
    if (unsigned other = set & ~one; one > other) {
      const LayoutCosts &tree = getTree(one);
      lower(costs, tree, getTree(other));
    }
}

const LayoutCosts &TensorBound::getMade() {
  if (isMadeKnown)
    return madeCosts.get();
  LayoutCosts &costs = madeCosts.renew();
  scatter(made, costs);
  graph->relax(costs, /*isBackward=*/false);
  isMadeKnown = true;
  return costs;
}

const LayoutCosts &TensorBound::getStart(unsigned set) {
  unsigned all = trees.size() - 1;
  if (set == all)
    return getMade();
  if (isStartKnown[set])
    return starts[set].get();
  LayoutCosts &costs = starts[set].renew();
  costs.assign(graph->size(), unreachable);
  unsigned rest = all & ~set;
  for (unsigned more = rest; more; more = (more - 1) & rest) {
    const LayoutCosts &tree = getTree(more);
    lower(costs, tree, getStart(set | more));
  }
  graph->relax(costs, /*isBackward=*/false);
  isStartKnown[set] = true;
  return costs;
}

void TensorBound::getMarginal(int user, LayoutCosts &marginal) {
  const Port &port = getPort(user);
  const LayoutCosts &costs =
      user == producer ? getTree(trees.size() - 1) : getStart(1u << user);
  marginal.resize(port.nodes.size());
  for (auto [node, cost] : llvm::zip_equal(port.nodes, marginal))
    cost = node >= 0 ? costs[node] : unreachable;
}

double TensorBound::getBase() {
  unsigned all = trees.size() - 1;
  double least = unreachable;
  // Use the end whose trees are known.
  if (isKnown[all]) {
    for (auto [node, cost] : llvm::zip_equal(made.nodes, made.costs))
      if (node >= 0)
        least = std::min(least, cost + trees[all].get()[node]);
    return least;
  }
  LayoutCosts costs;
  getForks(all, costs);
  const LayoutCosts &made = getMade();
  for (size_t node = 0; node < costs.size(); ++node)
    least = std::min(least, costs[node] + made[node]);
  return least;
}

std::vector<int> TensorBound::getForkNodes(double limit) {
  std::vector<bool> isKept(graph->size());
  auto keep = [&](const Port &port) {
    for (int node : port.nodes)
      if (node >= 0)
        isKept[node] = true;
  };
  keep(made);
  llvm::for_each(users, keep);
  LayoutCosts forks;
  for (unsigned set = 3; set < trees.size(); ++set) {
    if (llvm::isPowerOf2_32(set))
      continue;
    getForks(set, forks);
    const LayoutCosts &starts = getStart(set);
    for (size_t node = 0; node < forks.size(); ++node)
      if (forks[node] + starts[node] <= limit)
        isKept[node] = true;
  }
  std::vector<int> nodes;
  for (int node = 0; node < graph->size(); ++node)
    if (isKept[node])
      nodes.push_back(node);
  return nodes;
}

double TensorBound::getRest(unsigned inside, ArrayRef<int> nodes,
                            size_t maxWanted) {
  unsigned outside = (trees.size() - 1) & ~(inside >> 1);
  if (inside & producerBit) {
    // Every user is served from some existing layout, alone or with others.
    std::vector<double> best(outside + 1, unreachable);
    best[0] = 0;
    for (unsigned set = 1; set <= outside; ++set) {
      if (set & ~outside)
        continue;
      const LayoutCosts &tree = getTree(set);
      for (int node : nodes)
        best[set] = std::min(best[set], tree[node]);
      for (unsigned one = (set - 1) & set; one; one = (one - 1) & set)
        best[set] = std::min(best[set], best[one] + best[set & ~one]);
    }
    return best[outside];
  }
  // The tree to some of the layouts wanted and to the users outside.
  nodes = nodes.take_front(maxWanted);
  unsigned wanted = (1u << nodes.size()) - 1;
  unsigned all = wanted | outside << nodes.size();
  std::map<unsigned, LayoutCosts> mixed;
  auto get = [&](unsigned leaves) -> const LayoutCosts & {
    if (!(leaves & wanted))
      return getTree(leaves >> nodes.size());
    LayoutCosts &costs = mixed[leaves];
    if (llvm::isPowerOf2_32(leaves) && costs.empty())
      costs = graph
                  ->getDistances(nodes[llvm::Log2_32(leaves)],
                                 /*isBackward=*/true)
                  .vec();
    return costs;
  };
  for (unsigned leaves = 1; leaves <= all; ++leaves) {
    if (leaves & ~all || !(leaves & wanted) || llvm::isPowerOf2_32(leaves))
      continue;
    LayoutCosts costs(graph->size(), unreachable);
    for (unsigned one = (leaves - 1) & leaves; one; one = (one - 1) & leaves)
      if (unsigned other = leaves & ~one; one > other)
        lower(costs, get(one), get(other));
    if (leaves != all)
      graph->relax(costs, /*isBackward=*/true);
    mixed[leaves] = std::move(costs);
  }
  double least = unreachable;
  for (auto [tree, made] : llvm::zip_equal(get(all), getMade()))
    least = std::min(least, tree + made);
  return least;
}
