//===- ShardingSearch.h - The cheapest plan of a step -----------*- C++ -*-===//
//
// The exact search behind `--partition=cheapest`, which docs/AutoSharding.md
// explains. It minimises the cost of a step over the strategies of
// StrategySpace.h: the sum over tensors of the cheapest multicast trees that
// deliver them, plus the costs of the ops themselves.
//
// The search combines two methods. A dual lower bound
// (lib/AutoSharding/DualBound.h) holds for all plans, and a higher one for all
// plans that use a given strategy. A guess of the optimum prunes the strategies
// whose bound exceeds it. Variable elimination (Dechter: Bucket elimination,
// 1999) then finds the cheapest plan of the remaining strategies. A plan that
// costs no more than the guess is optimal. If there is none, the guess was too
// low and is raised.
//
// In programs with repeated layers, the bound and the pruning start with a few
// equivalence classes of ops. The classes are refined level by level until
// every op is a class of its own (lib/AutoSharding/OpEquivalenceClasses.h).
//
// Elimination works on sparse tables. Every op starts as a part of its own.
// Parts that share tensors are joined, in an order that leaves few tensors
// open. The state of an open tensor is a set of layouts: those in which it
// exists, if its producer is in the part, or else those in which the part wants
// it. The table of a part has one row per combination of states. A row is
// dropped if its lower bound exceeds the guess. It is also dropped if another
// row dominates it: if the cost of that row, plus the cost of converting its
// state into the state of this one, is no higher. Every completion of this row
// then completes the other at most as dearly. Nothing else is dropped, so the
// minimum is exact.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_SHARDINGSEARCH_H
#define SHARDC_AUTOSHARDING_SHARDINGSEARCH_H

#include "shardc/AutoSharding/SearchOptions.h"
#include "shardc/AutoSharding/SearchProblem.h"

namespace shardc {

/// The result of a search.
struct SearchSolution {
  /// The strategy of each op of the problem; empty if none was found. There is
  /// no plan at all if `lowerBound` is unreachable too.
  std::vector<int> strategies;
  /// Their cost; `unreachable` if there are none.
  double cost = unreachable;
  /// A lower bound of all plans. Equal to `cost`, up to the indifference,
  /// unless the search exceeded `maxWork`.
  double lowerBound = unreachable;
};

/// Most mesh axes of more than one device in a problem. A tensor of rank 2 has
/// thousands of layouts on so many.
constexpr int maxSearchedAxes = 4;

/// The limits of one search.
struct SearchLimits {
  /// Work (SearchOptions.h) after which the search falls back to a beam.
  /// `lowerBound` then bounds the cost of better plans that it may have missed.
  size_t maxWork;
  /// Plans that cost more are not considered.
  double upper = unreachable;
  /// The search stops at the first plan within this relative distance of the
  /// bound. A quick beam search looks for one once the bound hardly rises.
  double indifference = 0;
};

/// Repeated searches of one problem, with the collectives that it permits at
/// the time. Each search reuses the bound and the distances of the earlier
/// ones.
class ShardingSearch {
public:
  /// Borrows `problem`.
  explicit ShardingSearch(SearchProblem &problem,
                          const SearchOptions &options = {});
  ~ShardingSearch();

  /// The cheapest strategies of all ops.
  SearchSolution find(const SearchLimits &limits);
  /// The same, with the work that the options allow.
  SearchSolution find();
  /// From now on leaves out strategies that only plans above `upper` have, as
  /// far as the bound of the first search shows. Later searches must not make
  /// any plan cheaper.
  void dropAbove(double upper);
  /// The work of all searches so far.
  size_t getWork() const;

private:
  SearchProblem &problem;
  SearchOptions options;
  std::unique_ptr<struct SearchMemory> memory;
};

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_SHARDINGSEARCH_H
