//===- MemoryConstrainedSearch.cpp - The cheapest plan below a peak -------===//

#include "shardc/AutoSharding/MemoryConstrainedSearch.h"

#include "shardc/AutoSharding/KBestPlans.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace shardc;

/// The price of memory is first this part of the plan's cost, if all of its
/// memory is paid for; if a plan costs nothing any price will do.
constexpr double firstPrice = 1.0 / 1024, anyPrice = 1;
/// How it is raised, how often, and how often the last raise is halved, as a
/// factor.
constexpr double raise = 4;
constexpr int numRaises = 10, numHalvings = 4;
/// A search with a price for memory looks at this part of what the first one
/// may look at, and may find what costs this part more than the least.
constexpr int64_t pricedPart = 8;
constexpr double pricedGap = 1e-2;
/// So many plans are tried in the order of their cost; so many, of so many
/// searches, if memory at no price has brought one that fits.
constexpr int maxTries = 64, maxTriesInVain = 8;
constexpr int64_t maxSearchesInVain = 16;

namespace {

class FittingSearch {
public:
  FittingSearch(SearchProblem &problem, const CheapestPlan &cheapest,
                PriceMemory priceMemory, const CollectiveCosts &prices,
                const PlanLimits &limits, int64_t bytes, GetPeak getPeak)
      : problem(problem), cheapest(cheapest), priceMemory(priceMemory),
        prices(prices), limits(limits), bytes(bytes), getPeak(getPeak) {}

  MemoryConstrainedSearch run() {
    KBestPlans order(problem, prices, limits, cheapest);
    CheapestPlan plan = order.next();
    if (take(plan))
      return std::move(result);
    result.isLimited = true;
    if (!result.isFailed)
      payForMemory();
    // What is dearer than a plan that fits does not matter.
    bool isFound = !result.plan.options.empty();
    if (isFound)
      order.dropAbove(result.plan.cost);
    else
      order.limitSearches(maxSearchesInVain);
    int most = isFound ? maxTries : maxTriesInVain;
    double least = unreachable;
    for (int number = 0; number < most && !result.isFailed; ++number) {
      plan = order.next();
      if (plan.options.empty())
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
  /// What a plan is: options, and the collectives by which values move.
  using PlanKey = std::pair<std::vector<int>, std::set<CollectiveStart>>;

  /// Takes `plan` if it fits and is the cheapest so far; whether it fits.
  bool take(const CheapestPlan &plan) {
    auto [it, isNew] =
        peaks.try_emplace(PlanKey(plan.options, plan.price.starts));
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

  /// Raises the price of memory until a plan fits, and lowers it as far as one
  /// does.
  void payForMemory() {
    double price =
        firstPrice * cheapest.cost / std::max<int64_t>(result.leastPeak, 1);
    if (price == 0)
      price = anyPrice;
    bool isFitting = false;
    for (int number = 0; number <= numRaises && !isFitting; ++number) {
      price *= number ? raise : 1;
      isFitting = tryPrice(price);
      if (result.isFailed)
        return;
    }
    double below = price / raise;
    for (int halving = 0; isFitting && halving < numHalvings; ++halving) {
      // No plan costs less than the cheapest one.
      if (result.plan.cost <= cheapest.lowerBound)
        return;
      double middle = std::sqrt(below * price);
      (tryPrice(middle) ? price : below) = middle;
      if (result.isFailed)
        return;
    }
  }

  /// Whether the cheapest plan at `price` fits; if so it is taken if it is the
  /// cheapest of those so far by what all but memory costs.
  bool tryPrice(double price) {
    SearchProblem priced = priceMemory(price);
    result.memoryPrice = std::max(result.memoryPrice, price);
    PlanLimits most = limits;
    most.gap = std::max(limits.gap, pricedGap);
    most.maxWork /= pricedPart;
    most.maxBranchOptions /= pricedPart;
    CheapestPlan plan = findCheapestPlan(priced, prices, most);
    if (plan.options.empty())
      return false;
    plan.price.memory = 0;
    plan.cost = plan.price.getTotal();
    // Plans that cost less come in their order: nothing is proved by this one.
    plan.lowerBound = unreachable;
    return take(plan);
  }

  SearchProblem &problem;
  const CheapestPlan &cheapest;
  PriceMemory priceMemory;
  const CollectiveCosts &prices;
  PlanLimits limits;
  int64_t bytes;
  GetPeak getPeak;
  /// Of the plans tried.
  std::map<PlanKey, PlanPeak> peaks;
  /// A plan that costs as much may fit, though it was not seen to.
  double leastUnproved = unreachable;
  MemoryConstrainedSearch result;
};

} // namespace

MemoryConstrainedSearch
shardc::findPlanThatFits(SearchProblem &problem, const CheapestPlan &cheapest,
                         PriceMemory priceMemory, const CollectiveCosts &prices,
                         const PlanLimits &limits, int64_t bytes,
                         GetPeak getPeak) {
  return FittingSearch(problem, cheapest, priceMemory, prices, limits, bytes,
                       getPeak)
      .run();
}
