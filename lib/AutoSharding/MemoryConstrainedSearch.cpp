//===- MemoryConstrainedSearch.cpp - The cheapest plan below a peak -------===//

#include "shardc/AutoSharding/MemoryConstrainedSearch.h"

#include "shardc/AutoSharding/KBestPlans.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace shardc;

/// The price of memory if the cheapest plan costs nothing; any value will do.
constexpr double anyPrice = 1;

namespace {

class FittingSearch {
public:
  FittingSearch(SearchProblem &problem, const CheapestPlan &cheapest,
                PriceMemory priceMemory, const CollectiveCosts &collectiveCosts,
                const SearchOptions &options, int64_t bytes, GetPeak getPeak)
      : problem(problem), cheapest(cheapest), priceMemory(priceMemory),
        collectiveCosts(collectiveCosts), options(options), bytes(bytes),
        getPeak(getPeak) {}

  MemoryConstrainedSearch run() {
    KBestPlans order(problem, collectiveCosts, options, cheapest);
    CheapestPlan plan = order.next();
    if (take(plan))
      return std::move(result);
    result.isLimited = true;
    if (!result.isFailed)
      payForMemory();
    // Plans that cost more than one that fits do not matter.
    bool isFound = !result.plan.strategies.empty();
    if (isFound)
      order.dropAbove(result.plan.cost);
    else
      order.limitSearches(options.memory.maxSearchesInVain);
    int most =
        isFound ? options.memory.maxTries : options.memory.maxTriesInVain;
    double least = unreachable;
    for (int number = 0; number < most && !result.isFailed; ++number) {
      plan = order.next();
      if (plan.strategies.empty())
        break;
      if (take(plan)) {
        least = plan.lowerBound;
        break;
      }
    }
    least = std::min({least, order.getBound(), leastUnproved});
    result.plan.lowerBound = std::min(result.plan.cost, least);
    return std::move(result);
  }

private:
  /// The identity of a plan: its strategies, and its collectives.
  using PlanKey = std::pair<std::vector<int>, std::set<MergedCollective>>;

  /// Takes `plan` if it fits and is the cheapest so far. Returns whether it
  /// fits.
  bool take(const CheapestPlan &plan) {
    auto [it, isNew] =
        peaks.try_emplace(PlanKey(plan.strategies, plan.terms.collectives));
    if (isNew) {
      std::optional<PlanPeak> found = getPeak(plan);
      result.isFailed |= !found;
      it->second = found.value_or(PlanPeak());
      if (result.numTried++ == 0 || it->second.bytes < result.leastPeak)
        result.leastPeak = it->second.bytes;
    }
    const PlanPeak &peak = it->second;
    if (result.isFailed)
      return false;
    if (peak.bytes > bytes) {
      if (peak.mayBeLess)
        leastUnproved = std::min(leastUnproved, plan.lowerBound);
      return false;
    }
    if (plan.cost < result.plan.cost) {
      result.plan = plan;
      result.peak = peak.bytes;
    }
    return true;
  }

  /// Raises the price of memory until a plan fits, then lowers it as far as one
  /// still does.
  void payForMemory() {
    double price = options.memory.firstPrice * cheapest.cost /
                   std::max<int64_t>(result.leastPeak, 1);
    if (price == 0)
      price = anyPrice;
    bool isFitting = false;
    for (int number = 0; number <= options.memory.numRaises && !isFitting;
         ++number) {
      price *= number ? options.memory.raise : 1;
      isFitting = tryPrice(price);
      if (result.isFailed)
        return;
    }
    double below = price / options.memory.raise;
    for (int halving = 0; isFitting && halving < options.memory.numHalvings;
         ++halving) {
      // No plan costs less than the cheapest one.
      if (result.plan.cost <= cheapest.lowerBound)
        return;
      double middle = std::sqrt(below * price);
      (tryPrice(middle) ? price : below) = middle;
      if (result.isFailed)
        return;
    }
  }

  /// Whether the cheapest plan at `price` fits. If so, it is taken if it is the
  /// cheapest so far without the cost of memory.
  bool tryPrice(double price) {
    SearchProblem priced = priceMemory(price);
    result.memoryPrice = std::max(result.memoryPrice, price);
    SearchOptions most = options;
    most.gap = std::max(options.gap, options.memory.pricedGap);
    most.maxWork /= options.memory.searchPart;
    most.maxBranchOptions /= options.memory.searchPart;
    CheapestPlan plan = findCheapestPlan(priced, collectiveCosts, most);
    if (plan.strategies.empty())
      return false;
    plan.terms.memory = 0;
    plan.cost = plan.terms.getTotal();
    // This plan proves nothing about cheaper plans, which come later in their
    // order.
    plan.lowerBound = unreachable;
    return take(plan);
  }

  SearchProblem &problem;
  const CheapestPlan &cheapest;
  PriceMemory priceMemory;
  const CollectiveCosts &collectiveCosts;
  SearchOptions options;
  int64_t bytes;
  GetPeak getPeak;
  /// The peaks of the plans tried.
  std::map<PlanKey, PlanPeak> peaks;
  /// A lower bound of plans that may fit, though the trial did not show it.
  double leastUnproved = unreachable;
  MemoryConstrainedSearch result;
};

} // namespace

MemoryConstrainedSearch shardc::findPlanThatFits(
    SearchProblem &problem, const CheapestPlan &cheapest,
    PriceMemory priceMemory, const CollectiveCosts &collectiveCosts,
    const SearchOptions &options, int64_t bytes, GetPeak getPeak) {
  return FittingSearch(problem, cheapest, priceMemory, collectiveCosts, options,
                       bytes, getPeak)
      .run();
}
