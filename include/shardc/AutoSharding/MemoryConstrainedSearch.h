//===- MemoryConstrainedSearch.h - The cheapest plan below a peak*- C++ -*-===//
//
// The peak memory of a plan is known only after compilation, and is no sum over
// ops and tensors. So plans are tried in the order of their cost until one
// fits. To save trials, the search first looks for any plan that fits: it puts
// a price on memory (a Lagrange multiplier; Everett: Generalized Lagrange
// multiplier method, 1963) and raises it. Then only cheaper plans than that one
// are tried, up to a limit.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_MEMORYCONSTRAINEDSEARCH_H
#define SHARDC_AUTOSHARDING_MEMORYCONSTRAINEDSEARCH_H

#include "shardc/AutoSharding/CheapestPlan.h"

#include <optional>

namespace shardc {

/// The memory of a plan.
struct PlanPeak {
  int64_t bytes = 0;
  /// Whether the plan might need less, because not all of its variants were
  /// tried.
  bool mayBeLess = false;
};

/// The result of a search for plans within a memory limit.
struct MemoryConstrainedSearch {
  /// The cheapest plan found; without strategies if none of the plans tried
  /// fits. Its `lowerBound` holds for all plans that fit.
  CheapestPlan plan;
  /// The peak of `plan`, in bytes per device.
  int64_t peak = 0;
  /// Whether measuring a peak failed. The other members are then undefined.
  bool isFailed = false;
  /// Whether the cheapest plan of all exceeds the limit.
  bool isLimited = false;
  int numTried = 0;
  /// The lowest peak of the plans tried.
  int64_t leastPeak = 0;
  /// The highest price of memory used; 0: none.
  double memoryPrice = 0;
};

/// Builds the same problem with a price for each byte that an op works on.
using PriceMemory = llvm::function_ref<SearchProblem(double memoryPrice)>;
/// Measures the memory of a plan; nullopt if that failed.
using GetPeak =
    llvm::function_ref<std::optional<PlanPeak>(const CheapestPlan &)>;

/// The cheapest plan of `problem` with a peak of at most `bytes`. `cheapest` is
/// the result of findCheapestPlan. Plans differ in their strategies; reshards
/// are always the cheapest ones for these.
MemoryConstrainedSearch findPlanThatFits(SearchProblem &problem,
                                         const CheapestPlan &cheapest,
                                         PriceMemory priceMemory,
                                         const CollectiveCosts &collectiveCosts,
                                         const SearchOptions &options,
                                         int64_t bytes, GetPeak getPeak);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_MEMORYCONSTRAINEDSEARCH_H
