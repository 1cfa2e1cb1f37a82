//===- JoinOrder.cpp - The order of joins in elimination ------------------===//

#include "JoinOrder.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

JoinOrder::JoinOrder(const SearchProblem &problem,
                     const EliminationOptions &options)
    : problem(problem), options(options), partsOf(problem.values.size()) {
  for (const SearchValue &value : problem.values)
    weights.push_back(
        std::log2(double(value.table->getGraph().getNumLayouts() + 1)));
}

void JoinOrder::add(int part, ArrayRef<int> values, ArrayRef<int> remaining,
                    size_t numRows) {
  parts.push_back(
      {values.vec(), remaining.vec(), std::log2(double(numRows + 1))});
  live.insert(part);
  for (int value : values)
    partsOf[value].insert(part);
  for (int other : getNeighbours(part))
    candidates.emplace(getWeight(other, part), other, part);
}

void JoinOrder::remove(int part) {
  live.erase(part);
  for (int value : parts[part].values)
    partsOf[value].erase(part);
}

std::optional<std::pair<int, int>> JoinOrder::next() {
  do {
    while (!candidates.empty()) {
      auto [weight, first, second] = candidates.top();
      candidates.pop();
      if (!live.count(first) || !live.count(second))
        continue;
      remove(first);
      remove(second);
      return {{first, second}};
    }
  } while (findCandidates());
  return std::nullopt;
}

/// Whether two parts still share a tensor; they become a candidate.
bool JoinOrder::findCandidates() {
  for (const std::set<int> &sharing : partsOf)
    if (sharing.size() > 1) {
      int first = *sharing.begin(), second = *std::next(sharing.begin());
      candidates.emplace(getWeight(first, second), first, second);
      return true;
    }
  return false;
}

std::set<int> JoinOrder::getNeighbours(int part) const {
  std::set<int> neighbours;
  for (int value : parts[part].values) {
    auto it = partsOf[value].begin();
    if (partsOf[value].size() > options.maxNeighbours)
      it = std::prev(partsOf[value].end(), 2);
    neighbours.insert(it, partsOf[value].end());
  }
  neighbours.erase(part);
  return neighbours;
}

/// The weight of the tensors open after a join.
double JoinOrder::getWeight(int first, int second) const {
  const Part &lhs = parts[first], &rhs = parts[second];
  double after = 0;
  for (auto [value, remaining] : llvm::zip_equal(lhs.values, lhs.remaining)) {
    auto it = llvm::find(rhs.values, value);
    // Each side counts the ops of the other as remaining.
    bool isClosed = it != rhs.values.end() &&
                    remaining + rhs.remaining[it - rhs.values.begin()] ==
                        problem.values[value].numOps;
    after += isClosed ? 0 : weights[value];
  }
  for (int value : rhs.values)
    if (!llvm::is_contained(lhs.values, value))
      after += weights[value];
  return after + options.rowWeight * (lhs.logRows + rhs.logRows);
}
