//===- CollectiveCosts.h - Costs of collectives for planners ----*- C++ -*-===//
//
// The cost of moving bytes, in the unit of the objective: bytes on the wire or
// seconds (docs/Machines.md). Plain values; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_COSTMODEL_COLLECTIVECOSTS_H
#define SHARDC_COSTMODEL_COLLECTIVECOSTS_H

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Sharding/Layout.h"

#include <array>
#include <set>

namespace shardc {

/// Costs whose relative difference is at most this count as equal: sums of the
/// same terms in another order differ by less.
constexpr double costTolerance = 1e-9;

constexpr unsigned numCollectiveKinds = getMaxEnumValForCollectiveKind() + 1;

/// Costs of collectives on one mesh.
class CollectiveCosts {
public:
  /// A kind of collective over a set of axes.
  using Kind = std::pair<CollectiveKind, AxisSet>;

  /// Wire bytes per device; latency costs nothing.
  CollectiveCosts() = default;
  /// Seconds on `machine`.
  CollectiveCosts(const MeshAxes &mesh, const Machine &machine);
  /// Seconds per byte, by axis, without latency.
  explicit CollectiveCosts(llvm::ArrayRef<double> secondsPerByte)
      : secondsPerByte(secondsPerByte) {}

  /// The cost of `bytes` on the wire for a collective over `axes`.
  double getWire(AxisSet axes, double bytes) const;
  /// The latency (α) term of a collective: paid once for all collectives of one
  /// kind and over the same axes that may be merged.
  double getLatency(CollectiveKind kind, AxisSet axes) const;
  bool hasLatencies() const { return !latencies.empty(); }
  llvm::ArrayRef<double> getSecondsPerByte() const { return secondsPerByte; }

  bool allows(CollectiveKind kind, AxisSet axes) const {
    return !forbidden.count({kind, axes}) &&
           (!allowed || allowed->count({kind, axes}));
  }

  /// Forbidden collectives and, if given, the only permitted ones.
  std::set<Kind> forbidden;
  std::optional<std::set<Kind>> allowed;

private:
  /// By axis; empty for the objective bytes.
  std::vector<double> secondsPerByte;
  /// By axis, and by kind: seconds of latency.
  std::vector<std::array<double, numCollectiveKinds>> latencies;
};

/// Costs of moving tensors, by the part of the step in which they are made. An
/// argument counts as made in the part that uses it first.
using CostsByPart = std::array<CollectiveCosts, 3>;

/// Collectives that may be merged.
struct MergedCollective {
  Part part;
  CollectiveCosts::Kind kind;

  bool operator<(const MergedCollective &o) const {
    return std::tie(part, kind) < std::tie(o.part, o.kind);
  }
};

/// The sum of the latencies of `collectives`, each paid once.
double getLatencyCost(const std::set<MergedCollective> &collectives,
                      const CollectiveCosts &costs);

/// `costs` for tensors of each part, with all collectives permitted except
/// `collectives`.
CostsByPart forbid(const std::set<MergedCollective> &collectives,
                   const CollectiveCosts &costs);

/// The same with no collectives permitted except `collectives`.
CostsByPart allowOnly(const std::set<MergedCollective> &collectives,
                      const CollectiveCosts &costs);

} // namespace shardc

#endif // SHARDC_COSTMODEL_COLLECTIVECOSTS_H
