//===- CollectiveCosts.h - What a planner minimises -------------*- C++ -*-===//
//
// The price of moving bytes, in the unit of the objective: bytes on the wire or
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

constexpr unsigned numCollectiveKinds = getMaxEnumValForCollectiveKind() + 1;

/// Prices of collectives on one mesh.
class CollectiveCosts {
public:
  /// A kind of collective over a set of axes.
  using Kind = std::pair<CollectiveKind, AxisSet>;

  /// Wire bytes per device; nothing is paid for a start.
  CollectiveCosts() = default;
  /// Seconds on `machine`.
  CollectiveCosts(const MeshAxes &mesh, const Machine &machine);
  /// Seconds where only what is on the wire counts, by axis, per byte.
  explicit CollectiveCosts(llvm::ArrayRef<double> secondsPerByte)
      : secondsPerByte(secondsPerByte) {}

  /// What `bytes` on the wire cost for a collective over `axes`.
  double getWire(AxisSet axes, double bytes) const;
  /// What it costs to start a collective: paid once for all of one kind, over
  /// the same axes, that merging may make one.
  double getStart(CollectiveKind kind, AxisSet axes) const;
  bool hasStarts() const { return !starts.empty(); }
  llvm::ArrayRef<double> getSecondsPerByte() const { return secondsPerByte; }

  bool allows(CollectiveKind kind, AxisSet axes) const {
    return !forbidden.count({kind, axes}) &&
           (!allowed || allowed->count({kind, axes}));
  }

  /// Collectives that may not be used, and if given the only ones that may.
  std::set<Kind> forbidden;
  std::optional<std::set<Kind>> allowed;
  /// Whether every use of a collective pays for a start, in estimates.
  bool paysEachStart = false;

private:
  /// By axis; empty if bytes are what counts.
  std::vector<double> secondsPerByte;
  /// By axis, and by kind: seconds of a start.
  std::vector<std::array<double, numCollectiveKinds>> starts;
};

/// What tensors cost to move, by the part of the step in which they are made.
/// An argument counts as made in the part that uses it first.
using PartPrices = std::array<CollectiveCosts, 3>;

/// Collectives that merging may make one.
struct CollectiveStart {
  Part part;
  CollectiveCosts::Kind kind;

  bool operator<(const CollectiveStart &o) const {
    return std::tie(part, kind) < std::tie(o.part, o.kind);
  }
};

/// What starting each of `starts` once costs.
double getStartCost(const std::set<CollectiveStart> &starts,
                    const CollectiveCosts &prices);

/// `prices` for tensors of each part, where all may be started but `starts`.
PartPrices forbid(const std::set<CollectiveStart> &starts,
                  const CollectiveCosts &prices);

/// The same where none but `starts` may be.
PartPrices allowOnly(const std::set<CollectiveStart> &starts,
                     const CollectiveCosts &prices);

} // namespace shardc

#endif // SHARDC_COSTMODEL_COLLECTIVECOSTS_H
