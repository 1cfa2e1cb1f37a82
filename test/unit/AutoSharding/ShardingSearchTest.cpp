//===- ShardingSearchTest.cpp - The search against trying everything ------===//
//
// Small random graphs on meshes of one to three axes with random annotations:
// the cost that the search finds is that of the best of all combinations, of
// bytes alone and of bytes, work and starts of collectives together.
//
//===----------------------------------------------------------------------===//

#include "RandomGraph.h"
#include "TryEverything.h"

#include "shardc/AutoSharding/CheapestPlan.h"

#include <gtest/gtest.h>

#include <set>

using namespace shardc;

namespace {

TEST(ShardingSearch, EqualsTryingEverything) {
  int numCases = 0, numMeshes[4] = {};
  for (unsigned seed = 0; numCases < 600 && seed < 20000; ++seed) {
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts prices;
    SearchProblem problem = makeProblem(graph, prices);
    double combinations = numCombinations(problem);
    if (combinations > 20000 || combinations < 2)
      continue;
    ++numCases;
    ++numMeshes[graph.mesh.getNumAxes()];
    double expected = tryEverything(problem);
    SearchSolution solution = ShardingSearch(problem).find();
    if (expected == unreachable) {
      EXPECT_TRUE(solution.options.empty()) << "seed " << seed;
      continue;
    }
    ASSERT_FALSE(solution.options.empty()) << "seed " << seed;
    EXPECT_NEAR(solution.cost, expected, 1e-6) << "seed " << seed;
    EXPECT_EQ(solution.lowerBound, solution.cost) << "seed " << seed;
    // The options do cost that.
    pin(problem, solution.options);
    EXPECT_NEAR(tryEverything(problem), expected, 1e-6) << "seed " << seed;
  }
  EXPECT_EQ(numCases, 600);
  EXPECT_GT(numMeshes[1], 50);
  EXPECT_GT(numMeshes[2], 50);
  EXPECT_GT(numMeshes[3], 5);
}

// So it does with few options left, where the bound is far below the cheapest
// plan and there is little between.
TEST(ShardingSearch, EqualsTryingEverythingThatIsLeft) {
  int numCases = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomGraph builder(seed);
    const ShardingGraph &graph = builder.graph;
    CollectiveCosts prices;
    SearchProblem problem = makeProblem(graph, prices);
    if (numCombinations(problem) > 2000)
      continue;
    std::mt19937 random(seed);
    std::vector<SearchOp> all = problem.ops;
    for (int round = 0; round < 15; ++round) {
      problem.ops = all;
      for (SearchOp &op : problem.ops) {
        std::vector<SearchOption> left;
        for (const SearchOption &option : *op.options)
          if (random() % 4)
            left.push_back(option);
        if (left.empty())
          left = *op.options;
        op.options =
            std::make_shared<const std::vector<SearchOption>>(std::move(left));
      }
      ++numCases;
      double expected = tryEverything(problem);
      SearchSolution solution = ShardingSearch(problem).find();
      if (expected < unreachable)
        EXPECT_NEAR(solution.cost, expected, 1e-6)
            << "seed " << seed << ", round " << round;
      else
        EXPECT_TRUE(solution.options.empty()) << "seed " << seed;
    }
  }
  EXPECT_GT(numCases, 4000);
}

// Tables that are cut off say so in the lower bound.
TEST(ShardingSearch, CutTablesAreBounded) {
  int numCut = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts prices;
    SearchProblem problem = makeProblem(graph, prices);
    if (numCombinations(problem) > 1e6)
      continue;
    SearchSolution exact = ShardingSearch(problem).find();
    SearchLimits none;
    none.maxWork = 0;
    SearchSolution cut = ShardingSearch(problem).find(none);
    if (exact.options.empty() || cut.options.empty())
      continue;
    EXPECT_LE(cut.lowerBound, exact.cost + 1e-6) << "seed " << seed;
    EXPECT_GE(cut.cost, exact.cost - 1e-6) << "seed " << seed;
    numCut += cut.lowerBound < cut.cost;
  }
  EXPECT_GT(numCut, 10);
}

/// Compares the cheapest plan of `graph` with the best of all plans.
void expectCheapest(const ShardingGraph &graph, SearchProblem &problem,
                    const CollectiveCosts &prices, int &numStarting) {
  double expected = tryAllStarts(problem, graph, prices);
  problem.forbid({});
  PlanLimits limits;
  limits.gap = 0;
  CheapestPlan plan = findCheapestPlan(problem, prices, limits);
  if (expected == unreachable) {
    EXPECT_TRUE(plan.options.empty());
    return;
  }
  ASSERT_FALSE(plan.options.empty());
  EXPECT_NEAR(plan.cost, expected, 1e-6 * expected);
  // Plans a millionth apart are equally good.
  EXPECT_LE(plan.lowerBound, plan.cost);
  EXPECT_GE(plan.lowerBound, expected * (1 - 1.001e-6));
  // What the plan is said to be made of does cost that.
  problem.forbid({});
  CostTerms price = problem.price(plan.options);
  EXPECT_NEAR(plan.price.getTotal(), plan.cost, 1e-6 * expected);
  EXPECT_NEAR(price.ops, plan.price.ops, 1e-6 * expected);
  numStarting += plan.price.start > 0;
}

TEST(CheapestPlan, EqualsTryingEverything) {
  int numCases = 0, numStarting = 0, numInParts = 0;
  for (unsigned seed = 0; numCases < 150 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph builder(seed);
    ShardingGraph &graph = builder.graph;
    std::mt19937 random(seed);
    addWork(graph, random);
    Machine machine;
    machine.defaultLink = {1.0 / (1 + random() % 4), double(random() % 4) * 40};
    CollectiveCosts prices(graph.mesh, machine);
    SearchProblem problem = makeProblem(graph, prices);
    std::vector<Part> parts = getPartsMadeIn(graph);
    bool isInParts = std::set<Part>(parts.begin(), parts.end()).size() > 1;
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() > 1 || combinations < 2 ||
        combinations > (isInParts ? 20 : 1000))
      continue;
    ++numCases;
    numInParts += isInParts;
    expectCheapest(graph, problem, prices, numStarting);
  }
  EXPECT_EQ(numCases, 150);
  EXPECT_GT(numStarting, 50);
  EXPECT_GT(numInParts, 30);
}

// On two axes there are collectives along one of them and along both. To have
// few sets of starts to try, some kinds are not to be had.
TEST(CheapestPlan, EqualsTryingEverythingOnTwoAxes) {
  constexpr AxisSet both = 3;
  int numCases = 0, numStarting = 0;
  for (unsigned seed = 0; numCases < 200 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph builder(seed);
    ShardingGraph &graph = builder.graph;
    std::mt19937 random(seed);
    addWork(graph, random);
    for (GraphOp &op : graph.ops)
      op.part = Part::Update;
    Machine machine;
    machine.defaultLink = {1.0 / (1 + random() % 4), double(random() % 4) * 40};
    CollectiveCosts prices(graph.mesh, machine);
    for (CollectiveKind kind :
         {CollectiveKind::AllToAll, CollectiveKind::CollectivePermute})
      for (AxisSet axes = both; axes; --axes)
        prices.forbidden.insert({kind, axes});
    SearchProblem problem = makeProblem(graph, prices);
    std::vector<Part> parts = getPartsMadeIn(graph);
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() != 2 || combinations < 2 ||
        combinations > 200 ||
        std::set<Part>(parts.begin(), parts.end()).size() > 1)
      continue;
    ++numCases;
    expectCheapest(graph, problem, prices, numStarting);
  }
  EXPECT_EQ(numCases, 200);
  EXPECT_GT(numStarting, 60);
}

} // namespace
