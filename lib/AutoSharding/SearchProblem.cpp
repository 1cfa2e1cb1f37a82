//===- SearchProblem.cpp - A step as a cost network -----------------------===//

#include "shardc/AutoSharding/SearchProblem.h"

#include "shardc/AutoSharding/StrategySpace.h"

#include <set>

using namespace llvm;
using namespace shardc;

/// The value whose storage layout `value` has.
static int getRoot(const ShardingGraph &graph, int value) {
  int root = graph.values[value].storedAs;
  return root < 0 ? value : root;
}

SearchProblem::SearchProblem(const ShardingGraph &graph, int first, int end,
                             const CollectiveCosts &collectiveCosts,
                             const StorageLayouts &known,
                             std::shared_ptr<LayoutGraphs> layouts,
                             double memoryPrice)
    : graph(graph), first(first), end(end), memoryPrice(memoryPrice),
      collectiveCosts(collectiveCosts), known(known),
      graphs(layouts ? layouts : std::make_shared<LayoutGraphs>(graph.mesh)),
      madeIn(getPartsMadeIn(graph)), isFree(graph.values.size()),
      isMaximum(graph.values.size()) {
  for (int axis = 0; axis < graph.mesh.getNumAxes(); ++axis)
    if (graph.mesh.getSize(axis) > 1)
      scope.axes |= axisBit(axis);
  scope.allowsStrided = llvm::popcount(scope.axes) <= maxStridedAxes;

  std::map<int, StoredTensors> stored;
  for (int index = first; index < end; ++index) {
    const GraphOp &op = graph.ops[index];
    for (int tensor : op.getTensors())
      if (graph.values[tensor].isStored)
        stored[getRoot(graph, tensor)].arguments.insert(tensor);
    if (op.kind == GraphOp::Return) {
      stored[op.results[0]].returned.push_back(op.getTensors()[0]);
      continue;
    }
    bool hasMaxima = llvm::any_of(op.rule.factors, [](const Factor &factor) {
      return factor.kind == FactorKind::Max;
    });
    for (int result : op.results) {
      isFree[result] = op.operands.empty();
      isMaximum[result] = hasMaxima;
    }
  }
  ops.reserve(stored.size() + end - first);
  for (const auto &[root, tensors] : stored)
    addStored(root, tensors);
  for (int index = first; index < end; ++index)
    if (graph.ops[index].kind != GraphOp::Return)
      addCompute(index);
  forbid({});

  for (auto [index, op] : llvm::enumerate(ops)) {
    std::set<int> seen;
    for (auto [port, value] : llvm::enumerate(op.ports)) {
      if (static_cast<int>(port) >= op.numOperands)
        values[value].producer = index;
      if (seen.insert(value).second)
        ++values[value].numOps;
    }
  }
}

LayoutGraph &SearchProblem::getGraph(int rank) {
  LayoutGraph &layouts = graphs->get(scope, rank);
  layouts.enumerate();
  return layouts;
}

int SearchProblem::getValue(int graphValue) {
  auto [it, isNew] = valueOf.try_emplace(graphValue, values.size());
  if (isNew) {
    const GraphValue &info = graph.values[graphValue];
    // A collective in a loop runs once per iteration.
    tensors.push_back({graphValue, info.elementBytes * info.repeats});
    values.emplace_back();
  }
  return it->second;
}

void SearchProblem::forbid(const std::set<MergedCollective> &collectives) {
  forbidden = collectives;
  SmallVector<const CollectiveCosts *, 3> byPart;
  for (CollectiveCosts &part : shardc::forbid(collectives, collectiveCosts))
    byPart.push_back(&variants.try_emplace(part.forbidden, part).first->second);
  for (auto [value, tensor] : llvm::zip_equal(values, tensors)) {
    ArrayRef<int64_t> shape = graph.values[tensor.graphValue].shape;
    const CollectiveCosts *variant =
        byPart[static_cast<size_t>(madeIn[tensor.graphValue])];
    value.table = &tables
                       .try_emplace({variant, shape.vec(), tensor.elementBytes},
                                    getGraph(shape.size()), *variant, shape,
                                    tensor.elementBytes)
                       .first->second;
  }
}

int SearchProblem::addPort(SearchOp &op, int graphValue) {
  op.ports.push_back(getValue(graphValue));
  return op.ports.back();
}

/// Everything that the strategies of an op and their costs depend on. Ops with
/// equal keys share their list.
std::vector<double> SearchProblem::getLikeness(const GraphOp &node) const {
  const ShardingRule &rule = node.rule;
  std::vector<double> key = {double(rule.partial), double(rule.needsBlocks)};
  auto addTensor = [&](const ShardingRule::TensorFactors &dims) {
    key.push_back(dims.size());
    for (const ShardingRule::DimFactors &factors : dims) {
      key.push_back(factors.size());
      key.insert(key.end(), factors.begin(), factors.end());
    }
  };
  key.push_back(rule.factors.size());
  for (const Factor &factor : rule.factors)
    key.insert(key.end(), {double(factor.size), double(factor.kind),
                           double(factor.mustDivide), double(factor.major),
                           double(factor.oneEach)});
  key.push_back(rule.operands.size());
  llvm::for_each(rule.operands, addTensor);
  llvm::for_each(rule.results, addTensor);
  for (int value : node.getTensors())
    key.insert(key.end(), {double(isFree[value]), double(isMaximum[value])});
  // The cost of the op itself.
  if (llvm::any_of(rule.factors, [](const Factor &f) { return f.oneEach; })) {
    const GraphValue &value = graph.values[node.results[0]];
    key.push_back(value.repeats * value.elementBytes);
  }
  key.push_back(node.seconds.perPoint);
  llvm::append_range(key, node.seconds.perElement);
  if (!node.seconds.perElement.empty() || memoryPrice > 0)
    for (ArrayRef<int> values :
         {ArrayRef(node.operands), ArrayRef(node.results)})
      for (int value : values) {
        llvm::append_range(key, graph.values[value].shape);
        key.push_back(graph.values[value].elementBytes);
      }
  return key;
}

double
SearchProblem::getMemoryCost(const GraphOp &node,
                             const ShardingStrategy &shardingStrategy) const {
  return memoryPrice > 0
             ? memoryPrice * getMemory(graph, node, shardingStrategy)
             : 0;
}

void SearchProblem::addCompute(int index) {
  const GraphOp &node = graph.ops[index];
  Origin origin;
  origin.graphOp = index;
  SearchOp op;
  const ShardingRule &rule = node.rule;
  // Layers repeat: the strategies of equal ops are computed once.
  int alike = -1;
  if (node.kind == GraphOp::Compute && !node.operands.empty())
    alike = likeOps.try_emplace(getLikeness(node), ops.size()).first->second;
  bool isKnown = alike >= 0 && alike < static_cast<int>(ops.size());
  std::vector<ShardingStrategy> shardingStrategies;
  if (node.kind == GraphOp::Constraint) {
    // Exactly the annotated layout, reduced unless it may be partial.
    const GraphValue &value = graph.values[node.results[0]];
    for (const Layout &layout : getAnnotatedLayouts(value, scope, graph.mesh)) {
      ShardingStrategy shardingStrategy;
      shardingStrategy.factors.assign(layout.dims.begin(), layout.dims.end());
      AxisSet all = value.unreduced & ~layout.getAxes();
      for (AxisSet partial = 0;; partial = (partial - all) & all) {
        shardingStrategy.partial.operands = partial;
        shardingStrategies.push_back(shardingStrategy);
        if (partial == all)
          break;
      }
    }
  } else if (!node.operands.empty() && !isKnown) {
    shardingStrategies = getStrategies(rule, scope, graph.mesh);
  }

  ArrayRef<int> operands = node.getTensors();
  SmallVector<int> used;
  for (auto [number, value] : llvm::enumerate(operands))
    if (!isFree[value]) {
      addPort(op, value);
      used.push_back(number);
    }
  op.numOperands = op.ports.size();
  if (!node.operands.empty())
    for (int result : node.results)
      addPort(op, result);
  std::vector<SearchStrategy> strategies;
  for (auto [choice, shardingStrategy] : llvm::enumerate(shardingStrategies)) {
    SearchStrategy strategy;
    strategy.choice = choice;
    bool isPossible = true;
    for (auto [number, value] : llvm::enumerate(operands)) {
      Layout layout = getOperandLayout(rule, shardingStrategy, number);
      // Constants are never partial sums, and maxima are reduced at once.
      if (layout.unreduced && (isFree[value] || isMaximum[value]))
        isPossible = false;
      if (!isFree[value])
        strategy.layouts.push_back(getGraph(layout.dims.size()).getId(layout));
    }
    if (!isPossible)
      continue;
    for (size_t number = 0; number < node.results.size(); ++number) {
      Layout layout = getResultLayout(rule, shardingStrategy, number);
      strategy.layouts.push_back(getGraph(layout.dims.size()).getId(layout));
    }
    strategy.cost = getSeconds(graph, node, shardingStrategy) +
                    getOwnWire(graph, node, shardingStrategy, collectiveCosts) +
                    getMemoryCost(node, shardingStrategy);
    strategies.push_back(std::move(strategy));
  }
  if (node.operands.empty())
    return;
  op.strategies = isKnown ? ops[alike].strategies
                          : std::make_shared<const std::vector<SearchStrategy>>(
                                std::move(strategies));
  origin.shardingStrategies =
      isKnown ? origins[alike].shardingStrategies
              : std::make_shared<const std::vector<ShardingStrategy>>(
                    std::move(shardingStrategies));
  ops.push_back(std::move(op));
  origins.push_back(std::move(origin));
}

void SearchProblem::addStored(int root, const StoredTensors &tensors) {
  Origin origin;
  origin.storedValue = root;
  SearchOp op;
  for (int value : tensors.returned)
    if (!isFree[value])
      addPort(op, value);
  op.numOperands = op.ports.size();
  for (int argument : tensors.arguments)
    addPort(op, argument);

  if (auto it = known.find(root); it != known.end())
    origin.layouts = {it->second};
  else
    origin.layouts = getAnnotatedLayouts(graph.values[root], scope, graph.mesh);
  std::vector<SearchStrategy> strategies;
  for (auto [choice, layout] : llvm::enumerate(origin.layouts)) {
    SearchStrategy strategy;
    strategy.choice = choice;
    strategy.layouts.assign(op.ports.size(),
                            getGraph(layout.dims.size()).getId(layout));
    strategies.push_back(std::move(strategy));
  }
  op.strategies = std::make_shared<const std::vector<SearchStrategy>>(
      std::move(strategies));
  ops.push_back(std::move(op));
  origins.push_back(std::move(origin));
}

int64_t SearchProblem::getNumStrategies() const {
  int64_t sum = 0;
  for (const SearchOp &op : ops)
    sum += op.strategies->size();
  return sum;
}

void SearchProblem::apply(ArrayRef<int> strategies,
                          std::vector<ShardingStrategy> &shardingStrategies,
                          StorageLayouts &stored) const {
  for (auto [op, origin, strategy] :
       llvm::zip_equal(ops, origins, strategies)) {
    int choice = (*op.strategies)[strategy].choice;
    if (origin.graphOp >= 0)
      shardingStrategies[origin.graphOp] = (*origin.shardingStrategies)[choice];
    else
      stored[origin.storedValue] = origin.layouts[choice];
  }
}

CostTerms SearchProblem::getCostTerms(ArrayRef<int> strategies) const {
  PlanDecisions decisions;
  for (const GraphOp &op : graph.ops)
    decisions.strategies.emplace_back().factors.resize(op.rule.factors.size());
  StorageLayouts stored = known;
  apply(strategies, decisions.strategies, stored);
  decisions.layouts = getStorageLayouts(graph, stored);
  ReshardPlanner planner(graph.mesh, /*usesAllAxes=*/true,
                         shardc::forbid(forbidden, collectiveCosts), graphs);
  CostTerms terms = shardc::getCostTerms(graph, first, end, decisions, planner,
                                         collectiveCosts);
  for (int index = first; index < end; ++index)
    if (const GraphOp &op = graph.ops[index];
        op.kind != GraphOp::Return && !op.operands.empty())
      terms.memory += getMemoryCost(op, decisions.strategies[index]);
  return terms;
}

std::vector<Layout>
shardc::getStorageLayouts(const ShardingGraph &graph,
                          const SearchProblem::StorageLayouts &stored) {
  std::vector<Layout> layouts;
  for (size_t value = 0; value < graph.values.size(); ++value) {
    int root = getRoot(graph, value);
    auto it = stored.find(root);
    layouts.push_back(
        it != stored.end()
            ? it->second
            : getAnnotatedLayouts(graph.values[root], {0}, graph.mesh)[0]);
  }
  return layouts;
}
