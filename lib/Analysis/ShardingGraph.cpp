//===- ShardingGraph.cpp - What a partitioner decides about ---------------===//

#include "shardc/Analysis/ShardingGraph.h"

using namespace shardc;

int shardc::getShardedFactor(const ShardingRule &rule,
                             const ShardingRule::DimFactors &factors) {
  if (factors.empty() || rule.factors[factors[0]].kind == FactorKind::Whole)
    return -1;
  return factors[0];
}

AxisSet shardc::getAxesOf(const ShardingRule &rule, const FactorAxes &factors,
                          FactorKind kind) {
  AxisSet set = 0;
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, factors))
    if (factor.kind == kind)
      for (int axis : axes)
        set |= axisBit(axis);
  return set;
}

Layout shardc::getTensorLayout(const ShardingRule &rule,
                               const ShardingRule::TensorFactors &dims,
                               const FactorAxes &factors) {
  Layout layout(dims.size());
  for (auto [dim, axes] : llvm::zip_equal(dims, layout.dims))
    if (int factor = getShardedFactor(rule, dim); factor >= 0)
      axes = factors[factor];
  return layout;
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
