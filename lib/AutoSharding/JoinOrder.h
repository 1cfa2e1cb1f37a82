//===- JoinOrder.h - The order of joins in elimination ----------*- C++ -*-===//
//
// Chooses the next two parts to join in variable elimination. A greedy order
// (min-weight: Kjaerulff, 1990): the join that leaves the fewest open tensors,
// weighted by log2 of their layouts. Ties go to smaller tables, then to program
// order.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_JOINORDER_H
#define SHARDC_LIB_AUTOSHARDING_JOINORDER_H

#include "shardc/AutoSharding/SearchOptions.h"
#include "shardc/AutoSharding/SearchProblem.h"

#include <queue>
#include <set>

namespace shardc {

class JoinOrder {
public:
  /// Borrows both.
  JoinOrder(const SearchProblem &problem, const EliminationOptions &options);

  /// Adds part `part`, numbered consecutively, with `numRows` rows and open
  /// tensors `values`. Of the ops of each, `remaining` are in other parts.
  void add(int part, llvm::ArrayRef<int> values, llvm::ArrayRef<int> remaining,
           size_t numRows);
  /// Removes and returns the two parts to join next; nullopt if no two parts
  /// share a tensor.
  std::optional<std::pair<int, int>> next();
  /// The parts not joined yet.
  const std::set<int> &getParts() const { return live; }

private:
  struct Part {
    std::vector<int> values, remaining;
    double logRows;
  };

  double getWeight(int first, int second) const;
  std::set<int> getNeighbours(int part) const;
  void remove(int part);
  bool findCandidates();

  const SearchProblem &problem;
  const EliminationOptions &options;
  /// The weight of each tensor. Tensors of rank 0 have hardly any layouts.
  std::vector<double> weights;
  std::vector<Part> parts;
  std::set<int> live;
  /// By value: the parts in which it is open.
  std::vector<std::set<int>> partsOf;
  /// (weight, first, second) of parts that share a tensor, or did.
  using Candidate = std::tuple<double, int, int>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>
      candidates;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_JOINORDER_H
