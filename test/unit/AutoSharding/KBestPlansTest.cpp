//===- KBestPlansTest.cpp - Plans in the order of their cost --------------===//
//
// On small random graphs all plans come, each once, in the order of what they
// cost.
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
  for (const auto &[options, cost] : costs)
    sorted.push_back(cost);
  llvm::sort(sorted);
  return sorted;
}

/// All plans of `problem`, in their order, cost what `costs` says, up to
/// `tolerance`.
void expectInOrder(SearchProblem &problem, const CollectiveCosts &prices,
                   const Costs &costs, double tolerance) {
  std::vector<double> sorted = sortCosts(costs);
  PlanLimits limits;
  limits.gap = 0;
  limits.maxBranchOptions = 1'000'000'000;
  KBestPlans order(problem, prices, limits,
                   findCheapestPlan(problem, prices, limits));
  std::set<std::vector<int>> seen;
  for (double expected : sorted) {
    EXPECT_LE(order.getBound(), expected * (1 + tolerance));
    CheapestPlan plan = order.next();
    ASSERT_FALSE(plan.options.empty()) << "after " << seen.size();
    EXPECT_TRUE(seen.insert(plan.options).second) << "twice";
    ASSERT_TRUE(costs.count(plan.options));
    EXPECT_NEAR(plan.cost, costs.at(plan.options), tolerance * expected);
    EXPECT_NEAR(plan.cost, expected, tolerance * expected);
    EXPECT_LE(plan.lowerBound, plan.cost);
    EXPECT_GE(plan.lowerBound, expected * (1 - tolerance));
  }
  EXPECT_TRUE(order.next().options.empty());
  EXPECT_EQ(order.getBound(), unreachable);
}

TEST(KBestPlans, HandsOutAllPlansByBytes) {
  int numCases = 0, numOnSeveralAxes = 0;
  for (unsigned seed = 0; numCases < 150 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts prices;
    SearchProblem problem = makeProblem(graph, prices);
    double combinations = numCombinations(problem);
    if (combinations > 200 || combinations < 4)
      continue;
    Costs costs = getCosts(problem);
    if (costs.size() < 2)
      continue;
    ++numCases;
    numOnSeveralAxes += graph.mesh.getNumAxes() > 1;
    expectInOrder(problem, prices, costs, 1e-6);
  }
  EXPECT_EQ(numCases, 150);
  EXPECT_GT(numOnSeveralAxes, 20);
}

TEST(KBestPlans, HandsOutAllPlansByTime) {
  int numCases = 0, numStarting = 0;
  for (unsigned seed = 0; numCases < 60 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    TimedGraph timed(seed);
    const ShardingGraph &graph = timed.builder.graph;
    SearchProblem problem = makeProblem(graph, timed.prices);
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() > 1 || combinations > 60 || combinations < 4)
      continue;
    Costs costs;
    for (const auto &[options, unused] : getCosts(problem)) {
      SearchProblem pinned = makeProblem(graph, timed.prices);
      pin(pinned, options);
      costs[options] = tryAllStarts(pinned, graph, timed.prices);
    }
    if (costs.size() < 2)
      continue;
    ++numCases;
    numStarting += timed.prices.getStart(CollectiveKind::AllGather, 1) > 0;
    // Plans a millionth apart come in any order.
    expectInOrder(problem, timed.prices, costs, 1e-5);
  }
  EXPECT_EQ(numCases, 60);
  EXPECT_GT(numStarting, 20);
}

TEST(KBestPlans, LeavesOutWhatIsDropped) {
  int numCases = 0;
  for (unsigned seed = 0; numCases < 20 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts prices;
    SearchProblem problem = makeProblem(graph, prices);
    if (numCombinations(problem) > 200)
      continue;
    std::vector<double> sorted = sortCosts(getCosts(problem));
    if (sorted.size() < 3 || sorted.front() == sorted.back())
      continue;
    ++numCases;
    double upper = sorted[sorted.size() / 2];
    auto end = llvm::lower_bound(sorted, upper * (1 - 1e-9));
    KBestPlans order(problem, prices, {}, findCheapestPlan(problem, prices));
    order.dropAbove(upper);
    for (auto it = sorted.begin(); it != end; ++it)
      EXPECT_FALSE(order.next().options.empty());
    CheapestPlan none = order.next();
    EXPECT_TRUE(none.options.empty());
    EXPECT_NEAR(none.lowerBound, upper, 1e-9 * upper);
  }
  EXPECT_EQ(numCases, 20);
}

} // namespace
