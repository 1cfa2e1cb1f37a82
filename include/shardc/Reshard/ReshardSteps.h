//===- ReshardSteps.h - One collective away ---------------------*- C++ -*-===//
//
// The edges of the graph of layouts: which layouts one collective, or a local
// slice, makes of a layout, and what it moves. The steps are
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
// Sizes that do not divide: a dimension of size s over n devices has blocks of
// ceil(s/n). A step is left out where the blocks before and after it do not
// tile each other, and a list with a gap must divide its dimension. Plain
// functions; thread-safe.
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
  /// form this many runs, and the step works on each of them.
  int64_t dimRuns = 1;
  int64_t concatRuns = 1;
  /// The layout after the step.
  Layout after = {};
  /// Bytes per device on the wire.
  int64_t wireBytes = 0;
};

/// The axes that can shard anything: those of more than one device.
AxisSet getShardingAxes(const MeshAxes &mesh);

/// Which layouts are considered.
struct LayoutScope {
  /// Axes that steps may use.
  AxisSet axes = 0;
  /// Whether shards may be strided.
  bool allowsStrided = true;
  /// Axes that steps move together, in this order; together they are `axes`.
  /// Layouts have them next to each other or not at all. Empty: every axis
  /// moves alone.
  std::vector<AxisList> bundles = {};

  /// The bundles; those of one axis each, in the order of the mesh, if none are
  /// given.
  std::vector<AxisList> getBundles(const MeshAxes &mesh) const;

  /// Whether a dimension may have `list`: without gaps, or with gaps that
  /// bundles can have left.
  bool allows(llvm::ArrayRef<int> list, const MeshAxes &mesh) const;
};

/// The steps out of `from` within `scope`, whatever the tensor's size;
/// `wireBytes` is not set. With more than five bundles in scope permutes are
/// left out, and partial sums over more than five end for all of them at once
/// or for one; with more than three in scope, groups of bundles that are sliced
/// or scattered together have at most two.
std::vector<ReshardStep> getStepsFrom(const Layout &from,
                                      const LayoutScope &scope,
                                      const MeshAxes &mesh);

/// Wire bytes per device, not rounded, of `step` out of `from` for a tensor of
/// global `shape`; nullopt if the sizes do not allow it.
std::optional<double> getStepBytes(const ReshardStep &step, const Layout &from,
                                   llvm::ArrayRef<int64_t> shape,
                                   int64_t elementBytes, const MeshAxes &mesh);

/// The collective that a step other than a slice is.
CollectiveKind getCollectiveKind(ReshardStep::Kind kind);

/// All axis lists of a dimension over `axes`, strided ones too if `allowGaps`:
/// every order of every subset, with some of the axes but the last gone. In a
/// deterministic order, `{}` first.
std::vector<AxisList> getAxisLists(AxisSet axes, bool allowGaps,
                                   const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARDSTEPS_H
