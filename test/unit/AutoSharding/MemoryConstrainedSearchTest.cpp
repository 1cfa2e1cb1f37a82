//===- MemoryConstrainedSearchTest.cpp - The cheapest plan below a peak ---===//
//
// On small random graphs with arbitrary peaks, the search finds the cheapest of
// all plans that fit.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"
#include "TryEverything.h"

#include "shardc/AutoSharding/MemoryConstrainedSearch.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

/// Random peaks that do not depend on the cost of a plan, but on its strategies
/// and, if collectives have latencies, on its collectives.
int64_t getPeak(const CheapestPlan &plan,
                const CollectiveCosts &collectiveCosts, unsigned seed) {
  std::vector<unsigned> key(plan.strategies.begin(), plan.strategies.end());
  for (const MergedCollective &start : plan.terms.collectives)
    if (collectiveCosts.hasLatencies())
      key.insert(key.end(),
                 {unsigned(start.kind.first), unsigned(start.kind.second)});
  std::seed_seq sequence(key.begin(), key.end());
  std::mt19937 random(sequence);
  return 1000 + (random() ^ seed) % 1000;
}

/// The cheapest plan of `graph` that fits.
MemoryConstrainedSearch find(const ShardingGraph &graph,
                             const CollectiveCosts &collectiveCosts,
                             int64_t bytes, GetPeak getPeak) {
  SearchProblem problem = makeProblem(graph, collectiveCosts);
  return findPlanThatFits(
      problem, findCheapestPlan(problem, collectiveCosts),
      [&](double price) { return makeProblem(graph, collectiveCosts, price); },
      collectiveCosts, {}, bytes, getPeak);
}

/// A search, with the plans that it tried.
struct Trial {
  Trial(const ShardingGraph &graph, const CollectiveCosts &collectiveCosts,
        unsigned seed, int64_t bytes) {
    found = find(
        graph, collectiveCosts, bytes,
        [&](const CheapestPlan &plan) -> std::optional<PlanPeak> {
          EXPECT_TRUE(
              tried.emplace(plan.strategies, plan.terms.collectives).second);
          return PlanPeak{getPeak(plan, collectiveCosts, seed)};
        });
    EXPECT_FALSE(found.isFailed);
    EXPECT_EQ(found.numTried, int(tried.size()));
    if (found.plan.strategies.empty()) {
      EXPECT_GT(found.leastPeak, bytes);
      return;
    }
    // The plan taken was tried, and fits.
    EXPECT_TRUE(
        tried.count({found.plan.strategies, found.plan.terms.collectives}));
    EXPECT_EQ(getPeak(found.plan, collectiveCosts, seed), found.peak);
    EXPECT_LE(found.peak, bytes);
  }

  std::set<std::pair<std::vector<int>, std::set<MergedCollective>>> tried;
  MemoryConstrainedSearch found;
};

TEST(MemoryConstrainedSearch, IsTheFirstInTheOrder) {
  constexpr int64_t bytes = 1100;
  int numCases = 0, numDearer = 0, numNone = 0;
  for (unsigned seed = 0; numCases < 150 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    if (numCombinations(problem) > 200)
      continue;
    Costs costs = getCosts(problem);
    if (costs.size() < 4)
      continue;
    ++numCases;
    double least = unreachable, expected = unreachable;
    for (const auto &[strategies, cost] : costs) {
      least = std::min(least, cost);
      CheapestPlan plan;
      plan.strategies = strategies;
      if (getPeak(plan, collectiveCosts, seed) <= bytes)
        expected = std::min(expected, cost);
    }
    Trial trial(graph, collectiveCosts, seed, bytes);
    const CheapestPlan &plan = trial.found.plan;
    EXPECT_LE(plan.lowerBound, expected * (1 + 1e-6));
    if (plan.strategies.empty()) {
      // Few are tried if no price of memory has found one.
      numNone += expected == unreachable;
      EXPECT_TRUE(trial.found.isLimited);
      continue;
    }
    EXPECT_GE(plan.cost, expected * (1 - 1e-6));
    // It is the cheapest, and proved to be, unless too many plans are cheaper.
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

// By time, plans of equal strategies may use other collectives, and other
// memory.
TEST(MemoryConstrainedSearch, HasTriedWhatItTakes) {
  int numFound = 0, numDearer = 0;
  for (unsigned seed = 1000; seed < 1700; ++seed) {
    SCOPED_TRACE(seed);
    TimedGraph timed(seed);
    const ShardingGraph &graph = timed.builder.graph;
    SearchProblem problem = makeProblem(graph, timed.collectiveCosts);
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() > 2 || combinations > 200 || combinations < 4)
      continue;
    CheapestPlan cheapest = findCheapestPlan(problem, timed.collectiveCosts);
    if (cheapest.strategies.empty())
      continue;
    for (int64_t bytes : {1150, 1300, 1500, 1700}) {
      Trial trial(graph, timed.collectiveCosts, seed, bytes);
      numFound += !trial.found.plan.strategies.empty();
      numDearer += trial.found.plan.cost > cheapest.cost * (1 + 1e-4);
    }
  }
  EXPECT_GT(numFound, 300);
  EXPECT_GT(numDearer, 50);
}

// A plan that may need less memory than measured leaves the bound below its
// cost.
TEST(MemoryConstrainedSearch, IsNotProvedWherePeaksMayBeLess) {
  RandomGraph random(0);
  CollectiveCosts collectiveCosts;
  SearchProblem problem = makeProblem(random.graph, collectiveCosts);
  CheapestPlan cheapest = findCheapestPlan(problem, collectiveCosts);
  auto findIf = [&](bool mayBeLess) {
    int numAsked = 0;
    return find(
        random.graph, collectiveCosts, 10,
        [&](const CheapestPlan &plan) -> std::optional<PlanPeak> {
          bool isDearer = plan.cost > cheapest.cost * 1.01;
          return PlanPeak{isDearer ? 10 : 100, ++numAsked == 1 && mayBeLess};
        });
  };
  EXPECT_GT(findIf(false).plan.lowerBound, cheapest.cost * 1.01);
  EXPECT_EQ(findIf(true).plan.lowerBound, cheapest.lowerBound);
  EXPECT_EQ(findIf(true).plan.cost, findIf(false).plan.cost);
}

// A failed measurement ends the search at once.
TEST(MemoryConstrainedSearch, StopsWherePeaksAreNotKnown) {
  RandomGraph random(0);
  int numAsked = 0;
  MemoryConstrainedSearch found = find(
      random.graph, CollectiveCosts(), 10,
      [&](const CheapestPlan &) -> std::optional<PlanPeak> {
        return ++numAsked == 1 ? std::optional(PlanPeak{100}) : std::nullopt;
      });
  EXPECT_TRUE(found.isFailed);
  EXPECT_TRUE(found.plan.strategies.empty());
  EXPECT_EQ(numAsked, 2);
}

} // namespace
