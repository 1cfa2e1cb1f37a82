//===- MemoryConstrainedSearch.h - The cheapest plan below a peak*- C++ -*-===//
//
// What memory a plan needs is known only once it has been compiled, and no sum
// over ops and tensors says it. So plans are tried, in the order of what they
// cost, until one fits. Where many plans cost less than the first one that
// fits, that takes long: first a plan that fits is looked for by giving memory
// a price (Everett: Generalized Lagrange multiplier method, 1963), and only
// plans cheaper than that are tried, up to a limit.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_MEMORYCONSTRAINEDSEARCH_H
#define SHARDC_AUTOSHARDING_MEMORYCONSTRAINEDSEARCH_H

#include "shardc/AutoSharding/CheapestPlan.h"

#include <optional>

namespace shardc {

/// What a plan needs.
struct PlanPeak {
  int64_t bytes = 0;
  /// Whether it might do with less, because not all that belongs to it was
  /// tried.
  bool mayBeLess = false;
};

/// What was found of plans that need at most so many bytes.
struct MemoryConstrainedSearch {
  /// The cheapest one found; no plan that fits costs less than its
  /// `lowerBound`. Without options if none of those tried fits.
  CheapestPlan plan;
  /// What it needs.
  int64_t peak = 0;
  /// Whether a peak could not be found out. Nothing else is known then.
  bool isFailed = false;
  /// Whether the cheapest plan of all needs more.
  bool isLimited = false;
  int numTried = 0;
  /// What the plan needs that needs least of those tried.
  int64_t leastPeak = 0;
  /// The highest price that memory was given; 0: none.
  double memoryPrice = 0;
};

/// The same problem with a price for each byte that an op works on.
using PriceMemory = llvm::function_ref<SearchProblem(double memoryPrice)>;
/// What a plan needs; nullopt if that could not be found out.
using GetPeak =
    llvm::function_ref<std::optional<PlanPeak>(const CheapestPlan &)>;

/// The cheapest plan of `problem` that needs at most `bytes`; `cheapest` is
/// what findCheapestPlan finds. A plan are options with the reshards that are
/// cheapest together.
MemoryConstrainedSearch
findPlanThatFits(SearchProblem &problem, const CheapestPlan &cheapest,
                 PriceMemory priceMemory, const CollectiveCosts &prices,
                 const PlanLimits &limits, int64_t bytes, GetPeak getPeak);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_MEMORYCONSTRAINEDSEARCH_H
