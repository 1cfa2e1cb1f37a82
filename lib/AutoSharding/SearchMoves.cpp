//===- SearchMoves.cpp - Moves of one tensor between layouts --------------===//

#include "SearchMoves.h"

using namespace llvm;
using namespace shardc;

int SetPool::getId(std::vector<int> set) {
  auto [it, isNew] = ids.try_emplace(std::move(set), sets.size());
  if (isNew)
    sets.push_back(&it->first);
  return it->second;
}

int SetPool::add(int id, int layout) {
  std::vector<int> set = get(id).vec();
  auto it = llvm::lower_bound(set, layout);
  if (it == set.end() || *it != layout)
    set.insert(it, layout);
  return getId(std::move(set));
}

int SetPool::unite(int lhs, int rhs) {
  for (int layout : get(rhs).vec())
    lhs = add(lhs, layout);
  return lhs;
}

ArrayRef<ValueMoves::Move> ValueMoves::deliver(int made, int wanted,
                                               int remaining) {
  auto [it, isNew] = deliveries.try_emplace(Key(made, wanted, remaining));
  if (isNew)
    it->second = findDeliveries(made, wanted, remaining);
  return it->second;
}

ArrayRef<double> ValueMoves::getTree(int set) {
  ArrayRef<int> layouts = pool.get(set);
  if (layouts.size() == 1)
    return graph.getDistances(layouts[0], /*isBackward=*/true);
  auto [it, isNew] = trees.try_emplace(set);
  LayoutCosts &costs = it->second;
  if (!isNew)
    return costs;
  costs.assign(graph.size(), unreachable);
  unsigned all = (1u << layouts.size()) - 1;
  for (unsigned one = (all - 1) & all; one; one = (one - 1) & all) {
    if (one < (all & ~one))
      continue;
    std::vector<int> parts[2];
    for (auto [index, layout] : llvm::enumerate(layouts))
      parts[one >> index & 1].push_back(layout);
    ArrayRef<double> lhs = getTree(pool.getId(std::move(parts[0])));
    ArrayRef<double> rhs = getTree(pool.getId(std::move(parts[1])));
    for (size_t id = 0; id < costs.size(); ++id)
      costs[id] = std::min(costs[id], lhs[id] + rhs[id]);
  }
  graph.relax(costs, /*isBackward=*/true);
  return costs;
}

double ValueMoves::getCostOf(int set, int layout) {
  ArrayRef<double> costs = graph.getDistances(layout, /*isBackward=*/true);
  double best = unreachable;
  for (int source : pool.get(set))
    best = std::min(best, costs[source]);
  return best;
}

double ValueMoves::getCost(int from, int to) {
  double sum = 0;
  for (int layout : pool.get(to))
    sum += getCostOf(from, layout);
  return sum;
}

/// Keeps the `most` cheapest sets.
static void keepCheapest(std::map<int, double> &known, size_t most) {
  if (known.size() <= most)
    return;
  std::vector<std::pair<double, int>> sorted;
  for (auto [set, cost] : known)
    sorted.emplace_back(cost, set);
  llvm::sort(sorted);
  for (auto [cost, set] : ArrayRef(sorted).drop_front(most))
    known.erase(set);
}

ValueMoves::Moves ValueMoves::findDeliveries(int made, int wanted,
                                             int remaining) {
  std::vector<int> layouts = pool.get(wanted).vec();
  ArrayRef<int> sources = pool.get(made);
  if (remaining == 0 && sources.size() == 1 &&
      layouts.size() <= options.graphs.maxTreeLayouts) {
    double cost = getTree(wanted)[sources[0]];
    if (cost == unreachable)
      return {};
    return {{SetPool::empty, cost}};
  }
  // Deliver one layout after another; `known` has the sets reached with their
  // costs.
  std::map<int, double> known = {{made, 0}};
  for (auto [index, layout] : llvm::enumerate(layouts)) {
    int toCome = remaining + layouts.size() - index - 1;
    std::map<int, double> next;
    for (auto [set, cost] : known)
      for (const Move &move : deliverOne(set, layout, toCome)) {
        auto [it, isNew] = next.try_emplace(move.set, cost + move.cost);
        if (!isNew)
          it->second = std::min(it->second, cost + move.cost);
      }
    known = std::move(next);
    if (work > maxWork)
      return {};
    if (isBeam)
      keepCheapest(known, options.graphs.maxBeamWays);
  }
  Moves moves;
  for (auto [set, cost] : known)
    moves.push_back({set, cost});
  return moves;
}

const ValueMoves::Moves &ValueMoves::deliverOne(int set, int layout,
                                                int remaining) {
  Key key(set, layout, remaining);
  auto it = singles.find(key);
  if (it == singles.end()) {
    Moves moves = findOne(set, layout, remaining);
    it = singles.try_emplace(key, std::move(moves)).first;
  }
  return it->second;
}

ValueMoves::Moves ValueMoves::findOne(int set, int layout, int remaining) {
  double direct = getCostOf(set, layout);
  if (direct == unreachable)
    return {};
  if (remaining == 0)
    return {{SetPool::empty, direct}};
  int delivered = pool.add(set, layout);
  Moves found = {{delivered, direct}};
  if (direct == 0)
    return found;
  ArrayRef<double> rest = graph.getDistances(layout, /*isBackward=*/true);
  ArrayRef<double> back = graph.getDistances(layout, /*isBackward=*/false);
  for (size_t between = 0; between < rest.size(); ++between) {
    double first = getCostOf(set, between);
    double way = first + rest[between];
    double later = std::min(first, back[between]);
    if (way == unreachable || way - direct >= later * (1 - costTolerance))
      continue;
    if (remaining == 1 || isBeam) {
      found.push_back({pool.add(delivered, between), way});
      continue;
    }
    if (work > maxWork)
      return {};
    Moves after = deliverOne(pool.add(set, between), layout, remaining - 1);
    for (const Move &move : after)
      found.push_back({move.set, first + move.cost});
  }
  work += found.size();
  return found;
}
