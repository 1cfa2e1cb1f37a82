//===- LatencySets.cpp - Sets of collectives with a latency ---------------===//

#include "LatencySets.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace shardc;

double shardc::getCost(const Paid &paid,
                       const CollectiveCosts &collectiveCosts) {
  double cost = getLatencyCost(paid.exactly, collectiveCosts);
  for (const MergedCollective &along : paid.alongAxis)
    if (llvm::none_of(paid.exactly, [&](const MergedCollective &collective) {
          return isAlong(collective, along);
        }))
      cost += collectiveCosts.getLatency(along.kind.first, along.kind.second);
  return cost;
}

bool shardc::isAlong(const MergedCollective &collective,
                     const MergedCollective &along) {
  return collective.part == along.part &&
         collective.kind.first == along.kind.first &&
         (collective.kind.second & along.kind.second);
}

MergedCollectives shardc::getCollectivesAlong(const MergedCollective &along,
                                              AxisSet axes) {
  MergedCollectives collectives;
  AxisSet others = axes & ~along.kind.second;
  for (AxisSet more = others;; more = (more - 1) & others) {
    collectives.insert(
        {along.part, {along.kind.first, along.kind.second | more}});
    if (more == 0)
      return collectives;
  }
}

MergedCollectives shardc::splitByAxis(const MergedCollectives &collectives) {
  MergedCollectives split;
  for (const MergedCollective &collective : collectives)
    for (AxisSet axes = collective.kind.second; axes; axes &= axes - 1)
      split.insert(
          {collective.part, {collective.kind.first, axes & (~axes + 1)}});
  return split;
}

bool shardc::haveCommon(const MergedCollectives &lhs,
                        const MergedCollectives &rhs) {
  return llvm::any_of(lhs, [&](const MergedCollective &collective) {
    return rhs.count(collective) > 0;
  });
}
