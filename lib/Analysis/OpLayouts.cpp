//===- OpLayouts.cpp - Layouts of an op's operands and results ------------===//

#include "shardc/Analysis/OpLayouts.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

StrategyAttr shardc::getStrategyAttr(Operation *op) {
  if (auto strategy = op->getAttrOfType<StrategyAttr>(strategyAttrName))
    return strategy;
  return op->getAttrOfType<StrategyAttr>(formerStrategyAttrName);
}

void shardc::setStrategyAttr(Operation *op, StrategyAttr strategy) {
  op->removeAttr(formerStrategyAttrName);
  op->removeAttr(strategyAttrName);
  if (strategy)
    op->setAttr(strategyAttrName, strategy);
}

/// Reads the `shardc.strategy` of `op` into axis numbers; emits an error and
/// fails if it does not fit.
static FailureOr<ShardingStrategy>
readStrategy(Operation *op, const MeshAxes &mesh, const ShardingRule &rule) {
  StrategyAttr attr = getStrategyAttr(op);
  if (!attr)
    return op->emitOpError("has no `shardc.strategy`; a planner such as "
                           "shardc-propagate must run first");
  if (attr.getFactors().size() != rule.factors.size())
    return op->emitOpError("`shardc.strategy` has ")
           << attr.getFactors().size()
           << " factors, but the op's sharding rule has "
           << rule.factors.size();
  ShardingStrategy strategy;
  AxisSet seen = 0;
  auto add = [&](StringAttr name, function_ref<void(int)> use) {
    int axis = mesh.find(name.getValue());
    if (axis < 0 || (seen & axisBit(axis)))
      return op->emitOpError("`shardc.strategy` uses axis ")
             << name << (axis < 0 ? ", which the mesh lacks" : " twice");
    seen |= axisBit(axis);
    if (mesh.getSize(axis) > 1)
      use(axis);
    return InFlightDiagnostic();
  };
  for (DimShardingAttr factor : attr.getFactors()) {
    AxisList &axes = strategy.factors.emplace_back();
    for (StringAttr name : factor.getAxes()) {
      if (int64_t gap = DimShardingAttr::getGapSize(name))
        axes.push_back(-gap);
      else if (auto error = add(name, [&](int axis) { axes.push_back(axis); });
               failed(error))
        return failure();
    }
  }
  auto addSet = [&](ArrayRef<StringAttr> names, AxisSet &set) {
    for (StringAttr name : names)
      if (auto error = add(name, [&](int axis) { set |= axisBit(axis); });
          failed(error))
        return failure();
    return success();
  };
  if (failed(addSet(attr.getUnreduced(), strategy.partial.operands)) ||
      failed(addSet(attr.getUnreducedRhs(), strategy.partial.rhs)))
    return failure();
  return strategy;
}

static LogicalResult verifyStrategy(Operation *op, const MeshAxes &mesh,
                                    const ShardingRule &rule,
                                    const ShardingStrategy &strategy) {
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, strategy.factors)) {
    int64_t shards = mesh.getNumShards(axes);
    if (shards == 1 && axes.empty())
      continue;
    if (factor.kind == FactorKind::Whole ||
        (factor.mustDivide && factor.size % shards != 0) ||
        (factor.oneEach && factor.size != shards) ||
        !followsMajor(factor, rule, strategy.factors, mesh))
      return op->emitOpError("`shardc.strategy` shards a factor of size ")
             << factor.size << " over " << shards
             << " devices, which its sharding rule forbids";
    if (isStrided(axes) && rule.needsBlocks)
      return op->emitOpError("`shardc.strategy` has strided shards, but the "
                             "op computes from global indices");
    if (isStrided(axes) && factor.size % mesh.getNumParts(axes) != 0)
      return op->emitOpError("`shardc.strategy` has strided shards of a "
                             "factor of size ")
             << factor.size << ", which its " << mesh.getNumParts(axes)
             << " parts do not divide";
  }
  if (rule.partial == PartialRule::Never && strategy.partial.all())
    return op->emitOpError("is assigned partial sums, but is not linear");
  if (rule.partial != PartialRule::Multilinear && strategy.partial.rhs)
    return op->emitOpError("is assigned partial sums of a second factor, but "
                           "is not multilinear");
  return success();
}

FailureOr<OpLayouts> OpLayouts::get(Operation *op, const MeshAxes &mesh) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return op->emitOpError("has no sharding rule");
  OpLayouts layouts;
  layouts.rule = interface.getShardingRule();
  const ShardingRule &rule = layouts.rule;
  FailureOr<ShardingStrategy> strategy = readStrategy(op, mesh, rule);
  if (failed(strategy) || failed(verifyStrategy(op, mesh, rule, *strategy)))
    return failure();
  for (size_t index = 0; index < rule.operands.size(); ++index)
    layouts.operands.push_back(getOperandLayout(rule, *strategy, index));
  for (size_t index = 0; index < rule.results.size(); ++index)
    layouts.results.push_back(getResultLayout(rule, *strategy, index));
  layouts.strategy = std::move(*strategy);
  return layouts;
}
