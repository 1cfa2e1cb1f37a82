//===- ShardingSearchTest.cpp - The search against trying everything ------===//
//
// On small random graphs, on meshes of one to three axes with random
// annotations, the search finds the cost of the best of all combinations: by
// bytes alone, and by bytes, work and latencies together.
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
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    double combinations = numCombinations(problem);
    if (combinations > 20000 || combinations < 2)
      continue;
    ++numCases;
    ++numMeshes[graph.mesh.getNumAxes()];
    double expected = tryEverything(problem);
    SearchSolution solution = ShardingSearch(problem).find();
    if (expected == unreachable) {
      EXPECT_TRUE(solution.strategies.empty()) << "seed " << seed;
      continue;
    }
    ASSERT_FALSE(solution.strategies.empty()) << "seed " << seed;
    EXPECT_NEAR(solution.cost, expected, 1e-6) << "seed " << seed;
    EXPECT_EQ(solution.lowerBound, solution.cost) << "seed " << seed;
    // The strategies have that cost.
    pin(problem, solution.strategies);
    EXPECT_NEAR(tryEverything(problem), expected, 1e-6) << "seed " << seed;
  }
  EXPECT_EQ(numCases, 600);
  EXPECT_GT(numMeshes[1], 50);
  EXPECT_GT(numMeshes[2], 50);
  EXPECT_GT(numMeshes[3], 5);
}

// The same with few strategies left, where the bound is far below the cheapest
// plan and few plans lie between.
TEST(ShardingSearch, EqualsTryingEverythingThatIsLeft) {
  int numCases = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomGraph builder(seed);
    const ShardingGraph &graph = builder.graph;
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    if (numCombinations(problem) > 2000)
      continue;
    std::mt19937 random(seed);
    std::vector<SearchOp> all = problem.ops;
    for (int round = 0; round < 15; ++round) {
      problem.ops = all;
      for (SearchOp &op : problem.ops) {
        std::vector<SearchStrategy> left;
        for (const SearchStrategy &strategy : *op.strategies)
          if (random() % 4)
            left.push_back(strategy);
        if (left.empty())
          left = *op.strategies;
        op.strategies = std::make_shared<const std::vector<SearchStrategy>>(
            std::move(left));
      }
      ++numCases;
      double expected = tryEverything(problem);
      SearchSolution solution = ShardingSearch(problem).find();
      if (expected < unreachable)
        EXPECT_NEAR(solution.cost, expected, 1e-6)
            << "seed " << seed << ", round " << round;
      else
        EXPECT_TRUE(solution.strategies.empty()) << "seed " << seed;
    }
  }
  EXPECT_GT(numCases, 4000);
}

// No constant decides whether the result is right: with any single part of the
// search switched off, it is the same.
TEST(ShardingSearch, IsExactWithoutAnyPart) {
  using Change = void (*)(SearchOptions &);
  const Change changes[] = {
      [](SearchOptions &o) { o.bound.maxSweeps = 0; },
      [](SearchOptions &o) { o.bound.maxSweeps = 1; },
      [](SearchOptions &o) { o.bound.numPlainSweeps = 1'000'000; },
      [](SearchOptions &o) { o.bound.minorPart = 0; },
      [](SearchOptions &o) { o.bound.maxUsersSmall = o.bound.maxUsers = 1; },
      [](SearchOptions &o) { o.bound.prunes = false; },
      [](SearchOptions &o) { o.classes.isUsed = false; },
      [](SearchOptions &o) { o.classes.minGain = 1; },
      [](SearchOptions &o) { o.guess.minGrowth = 0; },
      [](SearchOptions &o) { o.guess.firstWidth = o.guess.firstFineWidth = 0; },
      [](SearchOptions &o) { o.elimination.dropsDominated = false; },
      [](SearchOptions &o) { o.elimination.quickBeam = 0; },
      [](SearchOptions &o) { o.elimination.maxNeighbours = 2; },
      [](SearchOptions &o) { o.graphs.maxMatrix = 0; },
      [](SearchOptions &o) { o.graphs.maxTreeLayouts = 1; },
  };
  int numCases = 0;
  for (unsigned seed = 0; numCases < 60 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph random(seed);
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(random.graph, collectiveCosts);
    double combinations = numCombinations(problem);
    if (combinations > 2000 || combinations < 2)
      continue;
    double expected = tryEverything(problem);
    if (expected == unreachable || expected == 0)
      continue;
    ++numCases;
    for (auto [number, change] : llvm::enumerate(changes)) {
      SCOPED_TRACE(number);
      SearchOptions options;
      change(options);
      SearchSolution solution = ShardingSearch(problem, options).find();
      EXPECT_NEAR(solution.cost, expected, 1e-6 * expected);
      EXPECT_NEAR(solution.lowerBound, expected, 1e-6 * expected);
    }
  }
  EXPECT_EQ(numCases, 60);
}

// A search that is cut off reports a lower bound.
TEST(ShardingSearch, CutTablesAreBounded) {
  int numCut = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectiveCosts collectiveCosts;
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    if (numCombinations(problem) > 1e6)
      continue;
    SearchSolution exact = ShardingSearch(problem).find();
    SearchSolution cut = ShardingSearch(problem).find({/*maxWork=*/0});
    if (exact.strategies.empty() || cut.strategies.empty())
      continue;
    EXPECT_LE(cut.lowerBound, exact.cost + 1e-6) << "seed " << seed;
    EXPECT_GE(cut.cost, exact.cost - 1e-6) << "seed " << seed;
    numCut += cut.lowerBound < cut.cost;
  }
  EXPECT_GT(numCut, 10);
}

/// Compares the cheapest plan of `graph` with the best of all plans.
void expectCheapest(const ShardingGraph &graph, SearchProblem &problem,
                    const CollectiveCosts &collectiveCosts,
                    int &numWithLatency) {
  double expected = tryAllLatencies(problem, graph, collectiveCosts);
  problem.forbid({});
  SearchOptions options;
  options.gap = 0;
  CheapestPlan plan = findCheapestPlan(problem, collectiveCosts, options);
  if (expected == unreachable) {
    EXPECT_TRUE(plan.strategies.empty());
    return;
  }
  ASSERT_FALSE(plan.strategies.empty());
  EXPECT_NEAR(plan.cost, expected, 1e-6 * expected);
  // Plans a millionth apart count as equal.
  EXPECT_LE(plan.lowerBound, plan.cost);
  EXPECT_GE(plan.lowerBound, expected * (1 - 1.001e-6));
  // The terms of the plan add up to its cost.
  problem.forbid({});
  CostTerms terms = problem.getCostTerms(plan.strategies);
  EXPECT_NEAR(plan.terms.getTotal(), plan.cost, 1e-6 * expected);
  EXPECT_NEAR(terms.ops, plan.terms.ops, 1e-6 * expected);
  numWithLatency += plan.terms.latency > 0;
}

TEST(CheapestPlan, EqualsTryingEverything) {
  int numCases = 0, numWithLatency = 0, numInParts = 0;
  for (unsigned seed = 0; numCases < 150 && seed < 20000; ++seed) {
    SCOPED_TRACE(seed);
    RandomGraph builder(seed);
    ShardingGraph &graph = builder.graph;
    std::mt19937 random(seed);
    addWork(graph, random);
    Machine machine;
    machine.defaultLink = {1.0 / (1 + random() % 4), double(random() % 4) * 40};
    CollectiveCosts collectiveCosts(graph.mesh, machine);
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    std::vector<Part> parts = getPartsMadeIn(graph);
    bool isInParts = std::set<Part>(parts.begin(), parts.end()).size() > 1;
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() > 1 || combinations < 2 ||
        combinations > (isInParts ? 20 : 1000))
      continue;
    ++numCases;
    numInParts += isInParts;
    expectCheapest(graph, problem, collectiveCosts, numWithLatency);
  }
  EXPECT_EQ(numCases, 150);
  EXPECT_GT(numWithLatency, 50);
  EXPECT_GT(numInParts, 30);
}

// On two axes there are collectives along one of them and along both. Some
// kinds are forbidden, so that there are few sets of latencies to try.
TEST(CheapestPlan, EqualsTryingEverythingOnTwoAxes) {
  constexpr AxisSet both = 3;
  int numCases = 0, numWithLatency = 0;
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
    CollectiveCosts collectiveCosts(graph.mesh, machine);
    for (CollectiveKind kind :
         {CollectiveKind::AllToAll, CollectiveKind::CollectivePermute})
      for (AxisSet axes = both; axes; --axes)
        collectiveCosts.forbidden.insert({kind, axes});
    SearchProblem problem = makeProblem(graph, collectiveCosts);
    std::vector<Part> parts = getPartsMadeIn(graph);
    double combinations = numCombinations(problem);
    if (graph.mesh.getNumAxes() != 2 || combinations < 2 ||
        combinations > 200 ||
        std::set<Part>(parts.begin(), parts.end()).size() > 1)
      continue;
    ++numCases;
    expectCheapest(graph, problem, collectiveCosts, numWithLatency);
  }
  EXPECT_EQ(numCases, 200);
  EXPECT_GT(numWithLatency, 60);
}

} // namespace
