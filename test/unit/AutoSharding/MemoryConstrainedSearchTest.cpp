//===- MemoryConstrainedSearchTest.cpp - The cheapest plan below a peak ---===//
//
// On small random graphs, with peaks that no price knows, what is found is the
// cheapest of all plans that fit.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"
#include "TryEverything.h"

#include "shardc/AutoSharding/MemoryConstrainedSearch.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

/// Peaks that have nothing to do with what a plan costs, but with all that it
/// is: where starts cost nothing, options alone.
int64_t getPeak(const CheapestPlan &plan, const CollectiveCosts &prices,
                unsigned seed) {
  std::vector<unsigned> key(plan.options.begin(), plan.options.end());
  for (const CollectiveStart &start : plan.price.starts)
    if (prices.hasStarts())
      key.insert(key.end(),
                 {unsigned(start.kind.first), unsigned(start.kind.second)});
  std::seed_seq sequence(key.begin(), key.end());
  std::mt19937 random(sequence);
  return 1000 + (random() ^ seed) % 1000;
}

/// The cheapest plan of all of `graph` that fits.
MemoryConstrainedSearch find(const ShardingGraph &graph,
                             const CollectiveCosts &prices, int64_t bytes,
                             GetPeak getPeak) {
  SearchProblem problem = makeProblem(graph, prices);
  return findPlanThatFits(
      problem, findCheapestPlan(problem, prices),
      [&](double price) { return makeProblem(graph, prices, price); }, prices,
      {}, bytes, getPeak);
}

/// What was tried, and what came of it.
struct Trial {
  Trial(const ShardingGraph &graph, const CollectiveCosts &prices,
        unsigned seed, int64_t bytes) {
    found = find(graph, prices, bytes,
                 [&](const CheapestPlan &plan) -> std::optional<PlanPeak> {
                   EXPECT_TRUE(
                       tried.emplace(plan.options, plan.price.starts).second);
                   return PlanPeak{getPeak(plan, prices, seed)};
                 });
    EXPECT_FALSE(found.isFailed);
    EXPECT_EQ(found.numTried, int(tried.size()));
    if (found.plan.options.empty()) {
      EXPECT_GT(found.leastPeak, bytes);
      return;
    }
    // What is taken was tried, and fits.
    EXPECT_TRUE(tried.count({found.plan.options, found.plan.price.starts}));
    EXPECT_EQ(getPeak(found.plan, prices, seed), found.peak);
    EXPECT_LE(found.peak, bytes);
  }

  std::set<std::pair<std::vector<int>, std::set<CollectiveStart>>> tried;
  MemoryConstrainedSearch found;
};

TEST(MemoryConstrainedSearch, IsTheFirstInTheOrder) {
  constexpr int64_t bytes = 1100;
  int numCases = 0, numDearer = 0, numNone = 0;
  for (unsigned seed = 0; numCases < 150 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts prices;
    SearchProblem problem = makeProblem(graph, prices);
    if (numCombinations(problem) > 200)
      continue;
    Costs costs = getCosts(problem);
    if (costs.size() < 4)
      continue;
    ++numCases;
    double least = unreachable, expected = unreachable;
    for (const auto &[options, cost] : costs) {
      least = std::min(least, cost);
      CheapestPlan plan;
      plan.options = options;
      if (getPeak(plan, prices, seed) <= bytes)
        expected = std::min(expected, cost);
    }
    Trial trial(graph, prices, seed, bytes);
    const CheapestPlan &plan = trial.found.plan;
    EXPECT_LE(plan.lowerBound, expected * (1 + 1e-6));
    if (plan.options.empty()) {
      // Not many are tried if memory had no price that brought one.
      numNone += expected == unreachable;
      EXPECT_TRUE(trial.found.isLimited);
      continue;
    }
    EXPECT_GE(plan.cost, expected * (1 - 1e-6));
    // Unless so many are cheaper it is the least, and known to be.
    if (trial.tried.size() < 64) {
      EXPECT_LE(plan.cost, expected * (1 + 1e-6));
      EXPECT_GE(plan.lowerBound, expected * (1 - 1e-6));
      numDearer += expected > least * (1 + 1e-6);
    }
  }
  EXPECT_EQ(numCases, 150);
  EXPECT_GT(numDearer, 20);
  EXPECT_GT(numNone, 5);
}

// By time the same options may be paid for with other collectives, and need
// other memory then.
TEST(MemoryConstrainedSearch, HasTriedWhatItTakes) {
  int numFound = 0, numDearer = 0;
  for (unsigned seed = 1000; seed < 1700; ++seed) {
    SCOPED_TRACE(seed);
    TimedGraph timed(seed);
    const ShardingGraph &graph = timed.builder.graph;
    SearchProblem problem = makeProblem(graph, timed.prices);
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() > 2 || combinations > 200 || combinations < 4)
      continue;
    CheapestPlan cheapest = findCheapestPlan(problem, timed.prices);
    if (cheapest.options.empty())
      continue;
    for (int64_t bytes : {1150, 1300, 1500, 1700}) {
      Trial trial(graph, timed.prices, seed, bytes);
      numFound += !trial.found.plan.options.empty();
      numDearer += trial.found.plan.cost > cheapest.cost * (1 + 1e-4);
    }
  }
  EXPECT_GT(numFound, 300);
  EXPECT_GT(numDearer, 50);
}

// A plan that may need less after all leaves its cost open.
TEST(MemoryConstrainedSearch, IsNotProvedWherePeaksMayBeLess) {
  RandomGraph random(0);
  CollectiveCosts prices;
  SearchProblem problem = makeProblem(random.graph, prices);
  CheapestPlan cheapest = findCheapestPlan(problem, prices);
  auto findIf = [&](bool mayBeLess) {
    int numAsked = 0;
    return find(
        random.graph, prices, 10,
        [&](const CheapestPlan &plan) -> std::optional<PlanPeak> {
          bool isDearer = plan.cost > cheapest.cost * 1.01;
          return PlanPeak{isDearer ? 10 : 100, ++numAsked == 1 && mayBeLess};
        });
  };
  EXPECT_GT(findIf(false).plan.lowerBound, cheapest.cost * 1.01);
  EXPECT_EQ(findIf(true).plan.lowerBound, cheapest.lowerBound);
  EXPECT_EQ(findIf(true).plan.cost, findIf(false).plan.cost);
}

// What cannot be found out ends the search at once.
TEST(MemoryConstrainedSearch, StopsWherePeaksAreNotKnown) {
  RandomGraph random(0);
  int numAsked = 0;
  MemoryConstrainedSearch found = find(
      random.graph, CollectiveCosts(), 10,
      [&](const CheapestPlan &) -> std::optional<PlanPeak> {
        return ++numAsked == 1 ? std::optional(PlanPeak{100}) : std::nullopt;
      });
  EXPECT_TRUE(found.isFailed);
  EXPECT_TRUE(found.plan.options.empty());
  EXPECT_EQ(numAsked, 2);
}

} // namespace
