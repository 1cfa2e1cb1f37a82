//===- LatencySets.h - Sets of collectives with a latency -------*- C++ -*-===//
//
// The sets of collectives that branch and bound charges or forbids. Plain
// functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_LATENCYSETS_H
#define SHARDC_LIB_AUTOSHARDING_LATENCYSETS_H

#include "shardc/CostModel/CollectiveCosts.h"

namespace shardc {

using MergedCollectives = std::set<MergedCollective>;

/// The latencies that a branch is charged. The latency of a collective is a sum
/// over its axes. So a branch can be charged the latency along a single axis,
/// which stands for all collectives over that axis and any others. Collectives
/// that can replace each other have such an axis in common.
struct Paid {
  /// Each over one axis: stands for some collective of that kind that includes
  /// the axis.
  MergedCollectives alongAxis;
  MergedCollectives exactly;
};

double getCost(const Paid &paid, const CollectiveCosts &collectiveCosts);

/// Whether `along`, over one axis, stands for `collective`.
bool isAlong(const MergedCollective &collective, const MergedCollective &along);

/// All collectives over some of `axes` for which `along` stands.
MergedCollectives getCollectivesAlong(const MergedCollective &along,
                                      AxisSet axes);

/// The collectives over one axis each that stand for `collectives`.
MergedCollectives splitByAxis(const MergedCollectives &collectives);

bool haveCommon(const MergedCollectives &lhs, const MergedCollectives &rhs);

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_LATENCYSETS_H
