//===- ReshardPermutes.cpp - The collective permutes out of a layout ------===//

#include "ReshardPermutes.h"

using namespace llvm;
using namespace shardc;

namespace {

constexpr size_t maxPermutedBundles = 5;

/// The shards of each run of axes and the gaps between, in order.
SmallVector<int64_t, 4> getPattern(ArrayRef<int> axes, const MeshAxes &mesh) {
  SmallVector<int64_t, 4> pattern;
  for (int axis : axes) {
    if (isGap(axis))
      pattern.push_back(axis);
    else if (pattern.empty() || pattern.back() < 0)
      pattern.push_back(mesh.getSize(axis));
    else
      pattern.back() *= mesh.getSize(axis);
  }
  return pattern;
}

/// Rearranges axes such that every run of them between gaps keeps its number of
/// shards.
class PermuteEnumerator {
public:
  PermuteEnumerator(const Layout &from, const LayoutScope &scope,
                    const MeshAxes &mesh)
      : from(from), scope(scope), mesh(mesh), rank(from.dims.size()),
        bundles(scope.getBundles(mesh)) {}

  std::vector<ReshardStep> run() {
    AxisSet pool = scope.axes & ~from.unreduced;
    if (from.getAxes() == 0 || bundles.size() > maxPermutedBundles)
      return {};
    SmallVector<AxisList, 2> dims(rank);
    enumerate(dims, 0, 0, 1, pool);
    return std::move(steps);
  }

private:
  /// Fills the place of the entries before `position` of dimension `dim`, where
  /// `wanted` shards are still missing.
  void enumerate(SmallVector<AxisList, 2> &dims, int dim, size_t position,
                 int64_t wanted, AxisSet pool) {
    if (wanted > 1) {
      for (const AxisList &bundle : bundles) {
        AxisSet axes = getAxisSet(bundle);
        int64_t shards = mesh.getNumShards(axes);
        if ((axes & ~pool) != 0 || wanted % shards != 0)
          continue;
        dims[dim].append(bundle);
        enumerate(dims, dim, position, wanted / shards, pool & ~axes);
        dims[dim].truncate(dims[dim].size() - bundle.size());
      }
      return;
    }
    if (dim == rank)
      return addPermuteTo(dims);
    ArrayRef<int> axes = from.dims[dim];
    if (position == axes.size())
      return enumerate(dims, dim + 1, 0, 1, pool);
    if (isGap(axes[position])) {
      dims[dim].push_back(axes[position]);
      enumerate(dims, dim, position + 1, 1, pool);
      dims[dim].pop_back();
      return;
    }
    for (; position < axes.size() && !isGap(axes[position]); ++position)
      wanted *= mesh.getSize(axes[position]);
    enumerate(dims, dim, position, wanted, pool);
  }

  void addPermuteTo(const SmallVector<AxisList, 2> &dims) {
    Layout to = from;
    to.dims = dims;
    for (const AxisList &axes : dims)
      if (!scope.allows(axes, mesh))
        return;
    if (auto step = getPermuteTo(to))
      steps.push_back(std::move(*step));
  }

  /// The permute to the dimensions of `to`, if there is one.
  std::optional<ReshardStep> getPermuteTo(const Layout &to) const {
    if (from.dims == to.dims || (to.getAxes() & from.unreduced))
      return std::nullopt;
    // Both orders list the axes dimension by dimension; those that only one
    // side uses come last on the other.
    ReshardStep step{ReshardStep::CollectivePermute, {}};
    AxisSet before = 0, after = 0;
    for (auto [now, then] : llvm::zip_equal(from.dims, to.dims)) {
      if (getPattern(now, mesh) != getPattern(then, mesh))
        return std::nullopt;
      if (now == then)
        continue;
      for (int axis : now)
        if (!isGap(axis))
          step.axes.push_back(axis);
      for (int axis : then)
        if (!isGap(axis))
          step.targetAxes.push_back(axis);
      before |= getAxisSet(now);
      after |= getAxisSet(then);
    }
    for (int axis : mesh.getList(after & ~before))
      step.axes.push_back(axis);
    for (int axis : mesh.getList(before & ~after))
      step.targetAxes.push_back(axis);
    step.after = from;
    step.after.dims = to.dims;
    return step;
  }

  const Layout &from;
  const LayoutScope &scope;
  const MeshAxes &mesh;
  int rank;
  std::vector<AxisList> bundles;
  std::vector<ReshardStep> steps;
};

} // namespace

std::vector<ReshardStep> shardc::getPermutesFrom(const Layout &from,
                                                 const LayoutScope &scope,
                                                 const MeshAxes &mesh) {
  return PermuteEnumerator(from, scope, mesh).run();
}
