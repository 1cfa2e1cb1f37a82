//===- StrategySpace.h - Every way to shard one op --------------*- C++ -*-===//
//
// The space in which `--partition=cheapest` finds the minimum: for each op
// every placement and order of axes on its factors, strided or not, and every
// choice of axes over which it works on partial sums, such that
//
//   - each axis makes the shards of its factor smaller, and a strided factor
//     divides evenly;
//   - a contraction uses every axis that one of its factors is large enough
//     for, so that no device repeats another's products.
//
// Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_AUTOSHARDING_STRATEGYSPACE_H
#define SHARDC_AUTOSHARDING_STRATEGYSPACE_H

#include "shardc/Reshard/ReshardSteps.h"
#include "shardc/Sharding/ShardingGraph.h"

namespace shardc {

/// Whether an op of `rule` multiplies and sums up: a contraction.
bool isContraction(const ShardingRule &rule);

/// Whether every axis of `axes` that some factor is large enough for shards a
/// factor in `assignment`.
bool usesEveryAxis(const ShardingRule &rule, const Assignment &assignment,
                   AxisSet axes, const MeshAxes &mesh);

/// All assignments of an op of `rule` within `scope`, in a deterministic order.
std::vector<Assignment> getAssignments(const ShardingRule &rule,
                                       const LayoutScope &scope,
                                       const MeshAxes &mesh);

/// All layouts that agree with the annotation of `value`, within `scope`, in a
/// deterministic order: closed dimensions have exactly their axes, open ones
/// may have more on the minor side, where these make the shards smaller.
std::vector<Layout> getAnnotatedLayouts(const GraphValue &value,
                                        const LayoutScope &scope,
                                        const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_AUTOSHARDING_STRATEGYSPACE_H
