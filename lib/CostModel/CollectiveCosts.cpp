//===- CollectiveCosts.cpp - Costs of collectives for planners ------------===//

#include "shardc/CostModel/CollectiveCosts.h"

using namespace llvm;
using namespace shardc;

CollectiveCosts::CollectiveCosts(const MeshAxes &mesh, const Machine &machine) {
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis) {
    LinkAxis link{mesh.getName(axis), mesh.getSize(axis)};
    secondsPerByte.push_back(1 / machine.getLink(link.name).bytesPerSecond);
    auto &byKind = starts.emplace_back();
    for (unsigned kind = 0; kind < numCollectiveKinds; ++kind)
      byKind[kind] =
          getLatencySeconds(machine, *symbolizeCollectiveKind(kind), link);
  }
}

double CollectiveCosts::getWire(AxisSet axes, double bytes) const {
  if (secondsPerByte.empty())
    return bytes;
  double seconds = 0;
  for (auto [axis, rate] : llvm::enumerate(secondsPerByte))
    if (axes & axisBit(axis))
      seconds = std::max(seconds, rate);
  return bytes * seconds;
}

double CollectiveCosts::getStart(CollectiveKind kind, AxisSet axes) const {
  double seconds = 0;
  for (auto [axis, byKind] : llvm::enumerate(starts))
    if (axes & axisBit(axis))
      seconds += byKind[static_cast<size_t>(kind)];
  return seconds;
}

double shardc::getStartCost(const std::set<CollectiveStart> &starts,
                            const CollectiveCosts &prices) {
  double cost = 0;
  for (const CollectiveStart &start : starts)
    cost += prices.getStart(start.kind.first, start.kind.second);
  return cost;
}

PartPrices shardc::forbid(const std::set<CollectiveStart> &starts,
                          const CollectiveCosts &prices) {
  PartPrices byPart;
  byPart.fill(prices);
  for (const CollectiveStart &start : starts)
    byPart[static_cast<size_t>(start.part)].forbidden.insert(start.kind);
  return byPart;
}

PartPrices shardc::allowOnly(const std::set<CollectiveStart> &starts,
                             const CollectiveCosts &prices) {
  PartPrices byPart;
  for (CollectiveCosts &part : byPart) {
    part = prices;
    part.allowed.emplace();
  }
  for (const CollectiveStart &start : starts)
    byPart[static_cast<size_t>(start.part)].allowed->insert(start.kind);
  return byPart;
}
