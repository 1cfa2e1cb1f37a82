//===- LatencySets.h - Sets of collectives that are started -----*- C++ -*-===//
//
// What the search for the cheapest plan says of starts of collectives. Plain
// functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_AUTOSHARDING_LATENCYSETS_H
#define SHARDC_LIB_AUTOSHARDING_LATENCYSETS_H

#include "shardc/CostModel/CollectiveCosts.h"

namespace shardc {

using Starts = std::set<CollectiveStart>;

/// What a branch pays for. What it costs to start a collective is a sum over
/// its axes, so it can be said that one along an axis is paid for, whatever its
/// other axes are: collectives that can stand in for each other have that in
/// common.
struct Paid {
  /// Over one axis each: some collective of that kind along that axis.
  Starts alongAxis;
  Starts exactly;
};

double getCost(const Paid &paid, const CollectiveCosts &prices);

/// Whether `start` is one of the collectives that `along`, over one axis,
/// stands for.
bool isAlong(const CollectiveStart &start, const CollectiveStart &along);

/// All of these on a mesh of `axes`.
Starts getStartsAlong(const CollectiveStart &along, AxisSet axes);

/// `starts` by axis.
Starts splitByAxis(const Starts &starts);

bool haveCommon(const Starts &lhs, const Starts &rhs);

} // namespace shardc

#endif // SHARDC_LIB_AUTOSHARDING_LATENCYSETS_H
