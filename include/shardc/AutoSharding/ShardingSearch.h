//===- ShardingSearch.h - The cheapest plan of a step -----------*- C++ -*-===//
//
// `--partition=cheapest`. The minimum over the space of StrategySpace of what
// a step costs: the sum over its tensors of the cheapest trees that deliver
// them, plus what the ops cost by themselves.
//
// Two methods together. A lower bound (lib/Analysis/DualBound.h) says what
// every plan costs at least, and every plan that runs an op in a given way.
// With a guess of what the cheapest plan costs, ways that would exceed it are
// dropped; then variable elimination (Dechter: Bucket elimination, 1999) finds
// the cheapest plan of those that are left. If it costs no more than the guess
// it is the cheapest of all; if there is none the guess was too low and is
// raised.
//
// Where layers repeat, the bound and what it drops start with classes of ops
// that look alike, of which there are few, and are refined level by level until
// every op is a class of its own (lib/Analysis/OpEquivalenceClasses.h).
//
// Elimination works on sparse tables. Every op starts as a part of its own;
// parts that share tensors are joined, in the order that leaves few tensors
// open. What is known of an open tensor is the layouts in which it exists, if
// its producer is in the part, or those in which the part wants it. A part's
// table has one row per combination of these. A row is dropped when the bound
// says that it leads above the guess, or when another one, plus the price of
// turning what that one has into what this one has, costs no more: whatever
// completes the one then completes the other at most as dearly. Nothing else is
// dropped, so the minimum is exact.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_SHARDINGSEARCH_H
#define SHARDC_AUTOSHARDING_SHARDINGSEARCH_H

#include "shardc/AutoSharding/SearchProblem.h"

namespace shardc {

/// What a search found.
struct SearchSolution {
  /// The option of each op of the problem; empty if none was found: there is
  /// none at all if `lowerBound` is unreachable too.
  std::vector<int> options;
  /// What they cost together; `unreachable` if no combination works.
  double cost = unreachable;
  /// No combination costs less than this: equal to `cost`, but for the
  /// indifference, and unless the search took more than `maxWork`.
  double lowerBound = unreachable;
};

/// Mesh axes of more than one device beyond which a problem is too large to be
/// written down: a tensor of rank 2 has thousands of layouts.
constexpr int maxSearchedAxes = 4;

/// Seconds.
constexpr size_t defaultSearchWork = 2'000'000;

/// How far a search goes.
struct SearchLimits {
  /// Pairs of rows joined or compared, and ways to deliver, after which tables
  /// keep only their most promising rows: what was missed can only be what
  /// `lowerBound` says.
  size_t maxWork = defaultSearchWork;
  /// Otherwise nothing is found then.
  bool becomesNarrow = true;
  /// Plans that cost more are none.
  double upper = unreachable;
  /// The first plan is taken that costs at most this part of the bound more; it
  /// is looked for among the most promising rows, once the bound hardly rises.
  double indifference = 0;
};

/// Searches of one problem, whatever it has forbidden at the time. What one
/// search has worked out helps the next.
class ShardingSearch {
public:
  /// Borrows `problem`.
  explicit ShardingSearch(SearchProblem &problem);
  ~ShardingSearch();

  /// The cheapest options of all ops.
  SearchSolution find(const SearchLimits &limits = {});
  /// From now on leaves out options that only plans above `upper` have, as far
  /// as the first search knows. Nothing costs less than it did then.
  void dropAbove(double upper);
  /// Pairs of rows, and ways to deliver, that all searches have looked at.
  size_t getWork() const;

private:
  SearchProblem &problem;
  std::unique_ptr<struct SearchMemory> memory;
};

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_SHARDINGSEARCH_H
