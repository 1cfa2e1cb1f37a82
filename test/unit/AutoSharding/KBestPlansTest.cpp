//===- KBestPlansTest.cpp - Plans in the order of their cost --------------===//
//
// On small random graphs all plans come once each, in the order of their cost.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"
#include "TryEverything.h"

#include "shardc/AutoSharding/KBestPlans.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

std::vector<double> sortCosts(const Costs &costs) {
  std::vector<double> sorted;
  for (const auto &[strategies, cost] : costs)
    sorted.push_back(cost);
  llvm::sort(sorted);
  return sorted;
}

/// Expects all plans of `problem` in order, with the costs in `costs` up to
/// `tolerance`.
void expectInOrder(SearchProblem &problem,
                   const CollectiveCosts &collectiveCosts, const Costs &costs,
                   double tolerance) {
  std::vector<double> sorted = sortCosts(costs);
  SearchOptions options;
  options.gap = 0;
  options.maxBranchOptions = 1'000'000'000;
  KBestPlans order(problem, collectiveCosts, options,
                   findCheapestPlan(problem, collectiveCosts, options));
  std::set<std::vector<int>> seen;
  for (double expected : sorted) {
    EXPECT_LE(order.getBound(), expected * (1 + tolerance));
    CheapestPlan plan = order.next();
    ASSERT_FALSE(plan.strategies.empty()) << "after " << seen.size();
    EXPECT_TRUE(seen.insert(plan.strategies).second) << "twice";
    ASSERT_TRUE(costs.count(plan.strategies));
    EXPECT_NEAR(plan.cost, costs.at(plan.strategies), tolerance * expected);
    EXPECT_NEAR(plan.cost, expected, tolerance * expected);
    EXPECT_LE(plan.lowerBound, plan.cost);
    EXPECT_GE(plan.lowerBound, expected * (1 - tolerance));
  }
  EXPECT_TRUE(order.next().strategies.empty());
  EXPECT_EQ(order.getBound(), unreachable);
}

TEST(KBestPlans, HandsOutAllPlansByBytes) {
  int numCases = 0, numOnSeveralAxes = 0;
  for (unsigned seed = 0; numCases < 150 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    double combinations = numCombinations(problem);
    if (combinations > 200 || combinations < 4)
      continue;
    Costs costs = getCosts(problem);
    if (costs.size() < 2)
      continue;
    ++numCases;
    numOnSeveralAxes += graph.mesh.getNumAxes() > 1;
    expectInOrder(problem, collectiveCosts, costs, 1e-6);
  }
  EXPECT_EQ(numCases, 150);
  EXPECT_GT(numOnSeveralAxes, 20);
}

TEST(KBestPlans, HandsOutAllPlansByTime) {
  int numCases = 0, numWithLatency = 0;
  for (unsigned seed = 0; numCases < 60 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    TimedGraph timed(seed);
    const ShardingGraph &graph = timed.builder.graph;
    SearchProblem problem = makeProblem(graph, timed.collectiveCosts);
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() > 1 || combinations > 60 || combinations < 4)
      continue;
    Costs costs;
    for (const auto &[strategies, unused] : getCosts(problem)) {
      SearchProblem pinned = makeProblem(graph, timed.collectiveCosts);
      pin(pinned, strategies);
      costs[strategies] = tryAllLatencies(pinned, graph, timed.collectiveCosts);
    }
    if (costs.size() < 2)
      continue;
    ++numCases;
    numWithLatency +=
        timed.collectiveCosts.getLatency(CollectiveKind::AllGather, 1) > 0;
    // Plans a millionth apart come in any order.
    expectInOrder(problem, timed.collectiveCosts, costs, 1e-5);
  }
  EXPECT_EQ(numCases, 60);
  EXPECT_GT(numWithLatency, 20);
}

TEST(KBestPlans, LeavesOutWhatIsDropped) {
  int numCases = 0;
  for (unsigned seed = 0; numCases < 20 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    if (numCombinations(problem) > 200)
      continue;
    std::vector<double> sorted = sortCosts(getCosts(problem));
    if (sorted.size() < 3 || sorted.front() == sorted.back())
      continue;
    ++numCases;
    double upper = sorted[sorted.size() / 2];
    auto end = llvm::lower_bound(sorted, upper * (1 - 1e-9));
    KBestPlans order(problem, collectiveCosts, {},
                     findCheapestPlan(problem, collectiveCosts));
    order.dropAbove(upper);
    for (auto it = sorted.begin(); it != end; ++it)
      EXPECT_FALSE(order.next().strategies.empty());
    CheapestPlan none = order.next();
    EXPECT_TRUE(none.strategies.empty());
    EXPECT_NEAR(none.lowerBound, upper, 1e-9 * upper);
  }
  EXPECT_EQ(numCases, 20);
}

} // namespace
