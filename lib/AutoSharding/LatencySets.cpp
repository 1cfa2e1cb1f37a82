//===- LatencySets.cpp - Sets of collectives that are started -------------===//

#include "LatencySets.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace shardc;

double shardc::getCost(const Paid &paid, const CollectiveCosts &prices) {
  double cost = getStartCost(paid.exactly, prices);
  for (const CollectiveStart &along : paid.alongAxis)
    if (llvm::none_of(paid.exactly, [&](const CollectiveStart &start) {
          return isAlong(start, along);
        }))
      cost += prices.getStart(along.kind.first, along.kind.second);
  return cost;
}

bool shardc::isAlong(const CollectiveStart &start,
                     const CollectiveStart &along) {
  return start.part == along.part && start.kind.first == along.kind.first &&
         (start.kind.second & along.kind.second);
}

Starts shardc::getStartsAlong(const CollectiveStart &along, AxisSet axes) {
  Starts starts;
  AxisSet others = axes & ~along.kind.second;
  for (AxisSet more = others;; more = (more - 1) & others) {
    starts.insert({along.part, {along.kind.first, along.kind.second | more}});
    if (more == 0)
      return starts;
  }
}

Starts shardc::splitByAxis(const Starts &starts) {
  Starts split;
  for (const CollectiveStart &start : starts)
    for (AxisSet axes = start.kind.second; axes; axes &= axes - 1)
      split.insert({start.part, {start.kind.first, axes & (~axes + 1)}});
  return split;
}

bool shardc::haveCommon(const Starts &lhs, const Starts &rhs) {
  return llvm::any_of(
      lhs, [&](const CollectiveStart &start) { return rhs.count(start) > 0; });
}
