//===- ShardingSearchTest.cpp - The search against trying everything ------===//
//
// Small random graphs on meshes of one to three axes with random annotations:
// the cost that the search finds is that of the best of all combinations, of
// bytes alone and of bytes, work and starts of collectives together.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/CheapestPlan.h"
#include "shardc/Analysis/DeliveryTrees.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

using namespace shardc;

namespace {

/// Builds a graph of a few ops over values of small, mostly even sizes.
class RandomGraph {
public:
  explicit RandomGraph(unsigned seed) : random(seed) {
    static const MeshAxes meshes[] = {
        MeshAxes({{"a", 2}}),
        MeshAxes({{"a", 4}}),
        MeshAxes({{"a", 2}, {"b", 2}}),
        MeshAxes({{"a", 3}, {"b", 2}}),
        MeshAxes({{"a", 2}, {"b", 2}, {"c", 2}}),
    };
    graph.mesh = meshes[pick(5)];
    int64_t rank = pick(3) ? 2 : 1;
    std::vector<int> values = {argument(shape(rank)), argument(shape(rank))};
    int numOps = 1 + pick(3);
    for (int op = 0; op < numOps; ++op)
      values.push_back(addOp(values));
    addReturn(values.back(), -1);
    // One argument is replaced by a value of its shape, if there is one.
    for (size_t value = 2; value < values.size(); ++value)
      if (graph.values[values[value]].shape == graph.values[values[0]].shape) {
        addReturn(values[value], values[0]);
        break;
      }
  }

  ShardingGraph graph;

private:
  int pick(int n) { return random() % n; }

  int64_t size() {
    static const int64_t sizes[] = {8, 24, 16, 48, 6, 5};
    return sizes[pick(6)];
  }

  llvm::SmallVector<int64_t> shape(int64_t rank) {
    llvm::SmallVector<int64_t> shape;
    for (int64_t dim = 0; dim < rank; ++dim)
      shape.push_back(size());
    return shape;
  }

  int value(llvm::ArrayRef<int64_t> shape) {
    GraphValue value;
    value.shape.assign(shape.begin(), shape.end());
    value.dims.resize(shape.size());
    graph.values.push_back(value);
    return graph.values.size() - 1;
  }

  /// Puts some axes on dimensions and closes some.
  void annotate(GraphValue &value) {
    std::vector<int> axes;
    for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
      axes.push_back(axis);
    std::shuffle(axes.begin(), axes.end(), random);
    for (int axis : axes)
      if (int place = pick(value.dims.size() + 1);
          place < static_cast<int>(value.dims.size()))
        value.dims[place].axes.push_back(axis);
    for (GraphDim &dim : value.dims)
      dim.isClosed = pick(4) != 0;
  }

  int argument(llvm::ArrayRef<int64_t> shape) {
    int id = value(shape);
    graph.values[id].isAtRest = true;
    annotate(graph.values[id]);
    return id;
  }

  void addReturn(int operand, int result) {
    GraphOp op;
    op.kind = GraphOp::Return;
    op.rule = getIdentityRule(graph.values[operand].shape);
    if (result < 0) {
      result = value(graph.values[operand].shape);
      annotate(graph.values[result]);
    }
    op.operands = {operand};
    op.results = {result};
    graph.ops.push_back(op);
  }

  int add(GraphOp op, llvm::ArrayRef<int> operands,
          llvm::ArrayRef<int64_t> shape) {
    op.operands.assign(operands.begin(), operands.end());
    op.results = {value(shape)};
    graph.ops.push_back(op);
    return op.results[0];
  }

  int addOp(llvm::ArrayRef<int> values) {
    int lhs = values[pick(values.size())];
    llvm::SmallVector<int64_t> shape = graph.values[lhs].shape;
    GraphOp op;
    if (shape.size() == 2 && pick(2)) {
      // A product with a fresh matrix, or one of a known column count.
      int rhs = -1;
      for (int value : values)
        if (graph.values[value].shape.size() == 2 &&
            graph.values[value].shape[0] == shape[1] && pick(2))
          rhs = value;
      if (rhs < 0)
        rhs = argument({shape[1], size()});
      int64_t columns = graph.values[rhs].shape[1];
      op.rule.factors = {{shape[0]}, {columns}, {shape[1], FactorKind::Sum}};
      op.rule.operands = {{{0}, {2}}, {{2}, {1}}};
      op.rule.results = {{{0}, {1}}};
      op.rule.partial = PartialRule::Multilinear;
      return add(op, {lhs, rhs}, {shape[0], columns});
    }
    if (shape.size() == 2 && pick(3) == 0) {
      bool isMax = pick(4) == 0;
      op.rule.factors = {{shape[1]},
                         {shape[0], isMax ? FactorKind::Max : FactorKind::Sum}};
      op.rule.operands = {{{1}, {0}}};
      op.rule.results = {{{0}}};
      op.rule.partial = isMax ? PartialRule::Never : PartialRule::Additive;
      return add(op, {lhs}, {shape[1]});
    }
    op.rule = getIdentityRule(shape);
    int rhs = -1;
    for (int value : values)
      if (graph.values[value].shape == shape && pick(2))
        rhs = value;
    if (rhs < 0) {
      op.rule.partial = pick(2) ? PartialRule::Never : PartialRule::Additive;
      return add(op, {lhs}, shape);
    }
    op.rule.operands.push_back(op.rule.operands[0]);
    static const PartialRule rules[] = {
        PartialRule::Additive, PartialRule::Multilinear,
        PartialRule::FirstOperand, PartialRule::Never};
    op.rule.partial = rules[pick(4)];
    return add(op, {lhs, rhs}, shape);
  }

  std::mt19937 random;
};

double numCombinations(const SearchProblem &problem) {
  double product = 1;
  for (const SearchOp &op : problem.ops)
    product *= op.options->size();
  return product;
}

/// The least over all combinations of options, each priced from its definition.
double tryEverything(SearchProblem &problem) {
  double best = unreachable;
  std::vector<int> made(problem.values.size());
  std::vector<std::vector<int>> wanted(problem.values.size());
  std::map<DistanceTable *, DeliveryTrees> trees;
  auto price = [&]() {
    double cost = 0;
    for (size_t value = 0; value < problem.values.size(); ++value) {
      std::set<int> distinct(wanted[value].begin(), wanted[value].end());
      if (distinct.empty())
        continue;
      DistanceTable *table = problem.values[value].table;
      std::vector<int> wanted(distinct.begin(), distinct.end());
      cost += trees.try_emplace(table, *table)
                  .first->second.getCosts(wanted)[made[value]]
                  .cost;
    }
    return cost;
  };
  auto choose = [&](auto &&self, size_t index, double cost) -> void {
    if (index == problem.ops.size()) {
      best = std::min(best, cost + price());
      return;
    }
    const SearchOp &op = problem.ops[index];
    for (const SearchOption &option : *op.options) {
      for (auto [port, value] : llvm::enumerate(op.ports)) {
        if (static_cast<int>(port) < op.numOperands)
          wanted[value].push_back(option.layouts[port]);
        else
          made[value] = option.layouts[port];
      }
      self(self, index + 1, cost + option.cost);
      for (auto [port, value] : llvm::enumerate(op.ports))
        if (static_cast<int>(port) < op.numOperands)
          wanted[value].pop_back();
    }
  };
  choose(choose, 0, 0);
  return best;
}

TEST(ShardingSearch, EqualsTryingEverything) {
  int numCases = 0, numMeshes[4] = {};
  for (unsigned seed = 0; numCases < 600 && seed < 20000; ++seed) {
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectivePrices prices;
    SearchProblem problem(graph, 0, graph.ops.size(), prices, {});
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
    for (auto [op, option] : llvm::zip_equal(problem.ops, solution.options)) {
      SearchOption chosen = (*op.options)[option];
      op.options = std::make_shared<const std::vector<SearchOption>>(1, chosen);
    }
    EXPECT_NEAR(tryEverything(problem), expected, 1e-6) << "seed " << seed;
  }
  EXPECT_EQ(numCases, 600);
  EXPECT_GT(numMeshes[1], 50);
  EXPECT_GT(numMeshes[2], 50);
  EXPECT_GT(numMeshes[3], 5);
}

// Tables that are cut off say so in the lower bound.
TEST(ShardingSearch, CutTablesAreBounded) {
  int numCut = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomGraph random(seed);
    const ShardingGraph &graph = random.graph;
    CollectivePrices prices;
    SearchProblem problem(graph, 0, graph.ops.size(), prices, {});
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

/// Work of random cost for all ops, in one or two parts of the step.
void addWork(ShardingGraph &graph, std::mt19937 &random) {
  size_t split = random() % (2 * graph.ops.size());
  for (auto [index, op] : llvm::enumerate(graph.ops)) {
    op.part = index >= split ? Part::Backward : Part::Forward;
    if (op.kind != GraphOp::Compute)
      continue;
    op.seconds.perPoint = random() % 2 * 0.25;
    for (size_t tensor = 0; tensor < op.operands.size() + op.results.size();
         ++tensor)
      op.seconds.perElement.push_back(random() % 3);
  }
}

/// The least over all sets of collectives that may be started, each paid for.
double tryAllStarts(SearchProblem &problem, const ShardingGraph &graph,
                    const CollectivePrices &prices) {
  std::set<Part> parts;
  for (Part part : getPartsMadeIn(graph))
    parts.insert(part);
  AxisSet all = (AxisSet(1) << graph.mesh.getNumAxes()) - 1;
  std::vector<CollectiveStart> kinds;
  for (Part part : parts)
    for (unsigned kind = 0; kind < numCollectiveKinds; ++kind)
      for (AxisSet axes = all; axes; axes = (axes - 1) & all)
        if (CollectivePrices::Kind start = {*symbolizeCollectiveKind(kind),
                                            axes};
            !prices.forbidden.count(start))
          kinds.push_back({part, start});
  // In the order of what the starts cost: once that alone, with all else for
  // the least there is, is no better, no further one is.
  std::vector<std::pair<double, std::set<CollectiveStart>>> subsets;
  for (unsigned subset = 0; subset < 1u << kinds.size(); ++subset) {
    std::set<CollectiveStart> paid;
    for (auto [index, kind] : llvm::enumerate(kinds))
      if (subset >> index & 1)
        paid.insert(kind);
    subsets.emplace_back(getStartCost(paid, prices), std::move(paid));
  }
  llvm::sort(subsets);
  problem.forbid({});
  double least = tryEverything(problem), best = unreachable;
  for (const auto &[cost, paid] : subsets) {
    if (least + cost >= best)
      break;
    std::set<CollectiveStart> others(kinds.begin(), kinds.end());
    for (const CollectiveStart &start : paid)
      others.erase(start);
    problem.forbid(others);
    best = std::min(best, tryEverything(problem) + cost);
  }
  return best;
}

/// Compares the cheapest plan of `graph` with the best of all plans.
void expectCheapest(const ShardingGraph &graph, SearchProblem &problem,
                    const CollectivePrices &prices, int &numStarting) {
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
  PlanPrice price = problem.price(plan.options);
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
    CollectivePrices prices(graph.mesh, machine);
    SearchProblem problem(graph, 0, graph.ops.size(), prices, {});
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
    CollectivePrices prices(graph.mesh, machine);
    for (CollectiveKind kind :
         {CollectiveKind::AllToAll, CollectiveKind::CollectivePermute})
      for (AxisSet axes = both; axes; --axes)
        prices.forbidden.insert({kind, axes});
    SearchProblem problem(graph, 0, graph.ops.size(), prices, {});
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
