//===- CollectiveCosts.cpp - Costs of collectives for planners ------------===//

#include "shardc/CostModel/CollectiveCosts.h"

using namespace llvm;
using namespace shardc;

CollectiveCosts::CollectiveCosts(const MeshAxes &mesh, const Machine &machine) {
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis) {
    LinkAxis link{mesh.getName(axis), mesh.getSize(axis)};
    secondsPerByte.push_back(1 / machine.getLink(link.name).bytesPerSecond);
    auto &byKind = latencies.emplace_back();
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

double CollectiveCosts::getLatency(CollectiveKind kind, AxisSet axes) const {
  double seconds = 0;
  for (auto [axis, byKind] : llvm::enumerate(latencies))
    if (axes & axisBit(axis))
      seconds += byKind[static_cast<size_t>(kind)];
  return seconds;
}

double shardc::getLatencyCost(const std::set<MergedCollective> &collectives,
                              const CollectiveCosts &costs) {
  double cost = 0;
  for (const MergedCollective &collective : collectives)
    cost += costs.getLatency(collective.kind.first, collective.kind.second);
  return cost;
}

CostsByPart shardc::forbid(const std::set<MergedCollective> &collectives,
                           const CollectiveCosts &costs) {
  CostsByPart byPart;
  byPart.fill(costs);
  for (const MergedCollective &collective : collectives)
    byPart[static_cast<size_t>(collective.part)].forbidden.insert(
        collective.kind);
  return byPart;
}

CostsByPart shardc::allowOnly(const std::set<MergedCollective> &collectives,
                              const CollectiveCosts &costs) {
  CostsByPart byPart;
  for (CollectiveCosts &part : byPart) {
    part = costs;
    part.allowed.emplace();
  }
  for (const MergedCollective &collective : collectives)
    byPart[static_cast<size_t>(collective.part)].allowed->insert(
        collective.kind);
  return byPart;
}
