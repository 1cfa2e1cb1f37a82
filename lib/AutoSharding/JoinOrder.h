//===- JoinOrder.h - Which parts of a step to join next ---------*- C++ -*-===//
//
// Variable elimination is as good as its order: parts are joined that leave few
// tensors open, of few layouts; ties go to smaller tables, then to the program.
// A greedy order (min-weight: Kjaerulff, 1990).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_JOINORDER_H
#define SHARDC_LIB_AUTOSHARDING_JOINORDER_H

#include "shardc/AutoSharding/SearchProblem.h"

#include <queue>
#include <set>

namespace shardc {

class JoinOrder {
public:
  explicit JoinOrder(const SearchProblem &problem);

  /// Part `part`, numbered one after the other, has `numRows` rows, and open
  /// are `values`: of each `remaining` ops are in other parts.
  void add(int part, llvm::ArrayRef<int> values, llvm::ArrayRef<int> remaining,
           size_t numRows);
  /// The two parts to be joined, which are no longer there; none: no tensor is
  /// shared.
  std::optional<std::pair<int, int>> next();
  /// The parts that are there.
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
  /// How a tensor weighs: those of rank 0 have hardly any layouts.
  std::vector<double> weights;
  std::vector<Part> parts;
  std::set<int> live;
  /// Parts in which a value is open.
  std::vector<std::set<int>> partsOf;
  /// (weight, first, second) of parts that share a tensor, or did.
  using Candidate = std::tuple<double, int, int>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>
      candidates;
};

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_JOINORDER_H
