//===- ShardingSearch.h - The cheapest plan of a step ----------*- C++ -*-===//
//
// `--partition=cheapest`. The minimum over the space of AssignmentSpace of what
// a step costs: the sum over its tensors of the cheapest trees that deliver
// them, plus what the ops cost by themselves.
//
// The method is variable elimination (Dechter: Bucket elimination, 1999) with
// sparse tables. Every op starts as a part of its own; parts that share tensors
// are joined, in the order that leaves few tensors open. What is known of an
// open tensor is the layouts in which it exists, if its producer is in the
// part, or those in which the part wants it. A part's table has one row per
// combination of these. A row is dropped when another one, plus the price of
// turning what that one has into what this one has, costs no more: whatever
// completes the one then completes the other at most as dearly. A row is also
// dropped when it costs more than a solution that is known, with the least of
// all other parts. Nothing else is dropped, so the minimum is exact.
//
// Layers that repeat have the same tables, up to a constant; joining these
// again is looked up, not computed.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_SHARDINGSEARCH_H
#define SHARDC_ANALYSIS_SHARDINGSEARCH_H

#include "shardc/Analysis/SearchProblem.h"

namespace shardc {

/// What a search found.
struct SearchSolution {
  /// The option of each op of the problem.
  std::vector<int> options;
  /// What they cost together; `unreachable` if no combination works.
  double cost = unreachable;
  /// No combination costs less than this: equal to `cost`, unless tables grew
  /// beyond `maxRows`.
  double lowerBound = unreachable;
  /// The largest table.
  size_t numRows = 0;
};

/// The cheapest options of all ops of `problem`. Tables keep at most `maxRows`
/// rows; what is cut off then can only be what `lowerBound` says.
SearchSolution findCheapest(SearchProblem &problem, size_t maxRows = 20000);

} // namespace shardc

#endif // SHARDC_ANALYSIS_SHARDINGSEARCH_H
