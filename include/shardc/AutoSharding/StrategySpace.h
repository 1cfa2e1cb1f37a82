//===- StrategySpace.h - All ways to shard one op ---------------*- C++ -*-===//
//
// The search space of `--partition=cheapest`. For each op it has every
// placement and order of axes on its factors, strided or not, and every choice
// of axes over which the op works on partial sums, such that
//
//   - each axis makes the shards of its factor smaller, and a strided factor
//     divides evenly;
//   - a contraction uses every axis that one of its factors is large enough
//     for, so that no device repeats the multiplications of another.
//
// Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_STRATEGYSPACE_H
#define SHARDC_AUTOSHARDING_STRATEGYSPACE_H

#include "shardc/Reshard/ReshardSteps.h"
#include "shardc/Sharding/ShardingGraph.h"

namespace shardc {

/// Whether an op of `rule` is a contraction: it multiplies and sums.
bool isContraction(const ShardingRule &rule);

/// Whether `strategy` shards some factor over every axis of
/// `axes` for which a factor is large enough.
bool usesEveryAxis(const ShardingRule &rule, const ShardingStrategy &strategy,
                   AxisSet axes, const MeshAxes &mesh);

/// All sharding strategies of an op of `rule` within `scope`, in a
/// deterministic order.
std::vector<ShardingStrategy> getStrategies(const ShardingRule &rule,
                                            const LayoutScope &scope,
                                            const MeshAxes &mesh);

/// All layouts within `scope` that agree with the annotation of `value`, in a
/// deterministic order. Closed dimensions have exactly their axes. Open ones
/// may have more axes on the minor side, where these make the shards smaller.
std::vector<Layout> getAnnotatedLayouts(const GraphValue &value,
                                        const LayoutScope &scope,
                                        const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_STRATEGYSPACE_H
