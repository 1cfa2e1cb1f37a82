//===- ShardingGraph.cpp - The input of propagation and search ------------===//

#include "shardc/Sharding/ShardingGraph.h"

using namespace shardc;

int shardc::getShardedFactor(const ShardingRule &rule,
                             const ShardingRule::DimFactors &factors) {
  if (factors.empty() || rule.factors[factors[0]].kind == FactorKind::Whole)
    return -1;
  return factors[0];
}

bool shardc::followsMajor(const Factor &factor, const ShardingRule &rule,
                          llvm::ArrayRef<AxisList> axes, const MeshAxes &mesh) {
  return factor.major < 0 || (!isStrided(axes[factor.major]) &&
                              mesh.getNumShards(axes[factor.major]) ==
                                  rule.factors[factor.major].size);
}

AxisSet shardc::getAxesOf(const ShardingRule &rule, const FactorAxes &factors,
                          FactorKind kind) {
  AxisSet set = 0;
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, factors))
    if (factor.kind == kind)
      for (int axis : axes)
        if (!isGap(axis))
          set |= axisBit(axis);
  return set;
}

Layout shardc::getTensorLayout(const ShardingRule &rule,
                               const ShardingRule::TensorFactors &dims,
                               const FactorAxes &factors) {
  Layout layout(dims.size());
  for (auto [dim, axes] : llvm::zip_equal(dims, layout.dims))
    for (int factor : dim)
      if (rule.factors[factor].kind != FactorKind::Whole)
        llvm::append_range(axes, factors[factor]);
  return layout;
}

Layout shardc::getOperandLayout(const ShardingRule &rule,
                                const ShardingStrategy &strategy, int index) {
  Layout layout = getTensorLayout(rule, rule.operands[index], strategy.factors);
  switch (rule.partial) {
  case PartialRule::Never:
    break;
  case PartialRule::Additive:
    layout.unreduced = strategy.partial.operands;
    break;
  case PartialRule::Multilinear:
    layout.unreduced = index == 0   ? strategy.partial.operands
                       : index == 1 ? strategy.partial.rhs
                                    : 0;
    break;
  case PartialRule::FirstOperand:
    layout.unreduced = index == 0 ? strategy.partial.operands : 0;
    break;
  }
  return layout;
}

Layout shardc::getResultLayout(const ShardingRule &rule,
                               const ShardingStrategy &strategy, int index) {
  Layout layout = getTensorLayout(rule, rule.results[index], strategy.factors);
  AxisSet maxima = getAxesOf(rule, strategy.factors, FactorKind::Max);
  layout.unreduced = strategy.partial.all() | maxima |
                     getAxesOf(rule, strategy.factors, FactorKind::Sum);
  if (maxima)
    layout.reduction = ReductionKind::Max;
  return layout;
}

double shardc::getSeconds(const ShardingGraph &graph, const GraphOp &op,
                          const ShardingStrategy &strategy) {
  double seconds = op.seconds.perPoint;
  if (seconds > 0)
    for (auto [factor, axes] :
         llvm::zip_equal(op.rule.factors, strategy.factors))
      seconds *= ceilDiv(factor.size, graph.mesh.getNumShards(axes));
  if (op.seconds.perElement.empty())
    return seconds;
  auto add = [&](double perElement, int value, const Layout &layout) {
    if (perElement > 0)
      seconds += perElement *
                 layout.getLocalElements(graph.values[value].shape, graph.mesh);
  };
  size_t number = 0;
  for (auto [index, value] : llvm::enumerate(op.operands))
    add(op.seconds.perElement[number++], value,
        getOperandLayout(op.rule, strategy, index));
  for (auto [index, value] : llvm::enumerate(op.results))
    add(op.seconds.perElement[number++], value,
        getResultLayout(op.rule, strategy, index));
  return seconds;
}

int64_t shardc::getMemory(const ShardingGraph &graph, const GraphOp &op,
                          const ShardingStrategy &strategy) {
  int64_t bytes = 0;
  auto add = [&](int value, const Layout &layout) {
    const GraphValue &info = graph.values[value];
    bytes +=
        layout.getLocalElements(info.shape, graph.mesh) * info.elementBytes;
  };
  for (auto [index, value] : llvm::enumerate(op.operands))
    add(value, getOperandLayout(op.rule, strategy, index));
  for (auto [index, value] : llvm::enumerate(op.results))
    add(value, getResultLayout(op.rule, strategy, index));
  return bytes;
}

std::vector<Part> shardc::getPartsMadeIn(const ShardingGraph &graph) {
  std::vector<std::optional<Part>> first(graph.values.size());
  for (const GraphOp &op : graph.ops) {
    for (int value : op.getTensors())
      if (!first[value])
        first[value] = op.part;
    // The part of a result is that of its op.
    if (op.kind != GraphOp::Return)
      for (int value : op.results)
        first[value] = op.part;
  }
  std::vector<Part> parts;
  for (std::optional<Part> part : first)
    parts.push_back(part.value_or(Part::Update));
  return parts;
}

ShardingRule shardc::getIdentityRule(llvm::ArrayRef<int64_t> shape) {
  ShardingRule rule;
  ShardingRule::TensorFactors dims;
  for (auto [index, size] : llvm::enumerate(shape)) {
    rule.factors.push_back({size});
    dims.push_back({static_cast<int>(index)});
  }
  rule.operands = {dims};
  rule.results = {dims};
  return rule;
}
