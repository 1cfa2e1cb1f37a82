//===- ReshardSteps.h - The edges of the layout graph -----------*- C++ -*-===//
//
// A step is one collective, or a local slice. It turns a layout into another
// one:
//
//   slice, reduce-scatter   put axes on a dimension: at its minor end, into a
//                           gap, or at the minor end behind a new gap;
//   all-gather              takes axes off a dimension; unless they were the
//                           minor-most ones a gap stays: strided shards;
//   all-to-all              takes axes off one dimension and puts them on
//                           another;
//   all-reduce              ends partial sums;
//   collective-permute      puts other axes, or the same ones in another order,
//                           where axes are.
//
// Uneven sizes: a dimension of size s over n devices has blocks of ceil(s/n).
// There is no step where the blocks before and after it do not tile each other.
// A list with a gap must divide its dimension. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_RESHARDSTEPS_H
#define SHARDC_RESHARD_RESHARDSTEPS_H

#include "shardc/CostModel/WireBytes.h"
#include "shardc/Sharding/Layout.h"

#include <vector>

namespace shardc {

/// One edge of a path.
struct ReshardStep {
  enum Kind {
    Slice,
    AllGather,
    ReduceScatter,
    AllReduce,
    AllToAll,
    CollectivePermute,
  };
  Kind kind;
  /// The axes of the group, major to minor.
  AxisList axes;
  /// CollectivePermute: the order of `axes` whose index names the sender.
  AxisList targetAxes = {};
  /// The dimension sliced, gathered or scattered; of AllToAll the one split.
  int dim = -1;
  /// AllToAll: the dimension concatenated.
  int concatDim = -1;
  /// Strided shards: the local elements of dimension `dim` (or `concatDim`)
  /// form this many runs, and the step applies to each of them.
  int64_t dimRuns = 1;
  int64_t concatRuns = 1;
  /// The layout after the step.
  Layout after = {};
  /// Bytes per device on the wire.
  int64_t wireBytes = 0;
};

/// The axes of more than one device.
AxisSet getShardingAxes(const MeshAxes &mesh);

/// The set of layouts that a graph has.
struct LayoutScope {
  /// Axes that steps may use.
  AxisSet axes = 0;
  /// Whether shards may be strided.
  bool allowsStrided = true;
  /// Axes that steps move together, in this order; together they are `axes`. A
  /// layout has the axes of a bundle next to each other or none of them. Empty:
  /// every axis moves alone.
  std::vector<AxisList> bundles = {};

  /// The bundles; if none are given, each axis on its own, in mesh order.
  std::vector<AxisList> getBundles(const MeshAxes &mesh) const;

  /// Whether a dimension may have the axes `list`: without gaps, or with gaps
  /// that bundles can leave.
  bool allows(llvm::ArrayRef<int> list, const MeshAxes &mesh) const;
};

/// The steps out of `from` within `scope`, for any tensor size; `wireBytes` is
/// not set. Large scopes have fewer steps. With more than five bundles there
/// are no permutes, and partial sums over more than five end for all of them at
/// once or for one. With more than three, at most two bundles are sliced or
/// scattered together.
std::vector<ReshardStep> getStepsFrom(const Layout &from,
                                      const LayoutScope &scope,
                                      const MeshAxes &mesh);

/// Wire bytes per device, not rounded, of `step` out of `from` for a tensor of
/// global `shape`; nullopt if the sizes forbid the step.
std::optional<double> getStepBytes(const ReshardStep &step, const Layout &from,
                                   llvm::ArrayRef<int64_t> shape,
                                   int64_t elementBytes, const MeshAxes &mesh);

/// The collective of a step other than a slice.
CollectiveKind getCollectiveKind(ReshardStep::Kind kind);

/// All axis lists of a dimension over `axes`, in a deterministic order, `{}`
/// first: every order of every subset. If `allowGaps`, also those in which gaps
/// stand for some of the axes but the last.
std::vector<AxisList> getAxisLists(AxisSet axes, bool allowGaps,
                                   const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARDSTEPS_H
