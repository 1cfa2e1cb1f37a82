//===- Elimination.h - The cheapest of the options left ---------*- C++ -*-===//
//
// Variable elimination over parts of a step; see ShardingSearch.h.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_ELIMINATION_H
#define SHARDC_LIB_AUTOSHARDING_ELIMINATION_H

#include "DualBound.h"

#include "shardc/AutoSharding/ShardingSearch.h"

namespace shardc {

/// What an elimination may look at.
struct EliminationLimits {
  /// Solutions that cost more than this above the bound are not looked for.
  double gap = unreachable;
  /// Rows of a table; of more those are kept that cost least when completed,
  /// and the solution need not be the cheapest.
  size_t maxRows = std::numeric_limits<size_t>::max();
  /// Combinations of rows, after which it gives up.
  size_t maxWork = std::numeric_limits<size_t>::max();
};

/// The cheapest solution with the options that `bound` has left, if one is
/// within the limits; its `options` are empty if there is none. `work` counts
/// combinations of rows; beyond the limit nothing is known.
SearchSolution eliminate(const SearchProblem &problem,
                         const OpEquivalenceClasses &classes, DualBound &bound,
                         const EliminationLimits &limits, size_t &work);

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_ELIMINATION_H
