//===- Elimination.h - Variable elimination ---------------------*- C++ -*-===//
//
// Variable elimination over the strategies that the bound has left, exact or as
// a beam search; see ShardingSearch.h.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_ELIMINATION_H
#define SHARDC_LIB_AUTOSHARDING_ELIMINATION_H

#include "DualBound.h"

#include "shardc/AutoSharding/ShardingSearch.h"

namespace shardc {

/// Limits of an elimination.
struct EliminationLimits {
  /// Solutions that cost more than this above the bound are ignored.
  double gap = unreachable;
  /// The beam width: each table keeps this many rows, those of the least cost
  /// when completed. The solution need not be optimal then.
  size_t maxRows = std::numeric_limits<size_t>::max();
  /// Combinations of rows after which it gives up.
  size_t maxWork = std::numeric_limits<size_t>::max();
};

/// The cheapest solution of the strategies left in `bound`, within the limits;
/// empty if there is none. Adds the combinations of rows to `work`; beyond the
/// limit the result means nothing.
SearchSolution eliminate(const SearchProblem &problem,
                         const OpEquivalenceClasses &classes, DualBound &bound,
                         const SearchOptions &options,
                         const EliminationLimits &limits, size_t &work);

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_ELIMINATION_H
