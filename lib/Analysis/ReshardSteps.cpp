//===- ReshardSteps.cpp - One collective away -----------------------------===//

#include "shardc/Analysis/ReshardSteps.h"

#include <set>

using namespace mlir;
using namespace shardc;

namespace {

constexpr int maxPermutedAxes = 5;
constexpr int maxGroupedAxes = 3;

AxisSet setOf(ArrayRef<int> axes) {
  AxisSet set = 0;
  for (int axis : axes)
    if (!isGap(axis))
      set |= axisBit(axis);
  return set;
}

/// Product of the gaps in `axes`.
int64_t getGaps(ArrayRef<int> axes) {
  int64_t gaps = 1;
  for (int axis : axes)
    gaps *= isGap(axis) ? -axis : 1;
  return gaps;
}

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

/// A place for axes in a list, and the runs of local elements before it.
struct Insertion {
  AxisList axes;
  int64_t runs;
};

class StepEnumerator {
public:
  StepEnumerator(const Layout &from, const LayoutScope &scope,
                 const MeshAxes &mesh)
      : from(from), scope(scope), mesh(mesh), rank(from.dims.size()) {}

  std::vector<ReshardStep> run() {
    addReductions();
    for (int dim = 0; dim < rank; ++dim)
      addGathersAndExchanges(dim);
    AxisSet free = scope.axes & ~from.getAxes() & ~from.unreduced;
    forEachGroup(free, [&](ArrayRef<int> group) {
      addSplits(ReshardStep::Slice, group);
    });
    forEachGroup(from.unreduced & scope.axes, [&](ArrayRef<int> group) {
      addSplits(ReshardStep::ReduceScatter, group);
    });
    addPermutes();
    return std::move(steps);
  }

private:
  void addReductions() {
    AxisSet all = from.unreduced & scope.axes;
    for (AxisSet subset = all; subset != 0; subset = (subset - 1) & all) {
      ReshardStep step{ReshardStep::AllReduce, mesh.getList(subset)};
      step.after = from;
      step.after.unreduced &= ~subset;
      steps.push_back(std::move(step));
    }
  }

  /// Calls `use` with every ordered group of axes of `set`.
  void forEachGroup(AxisSet set, function_ref<void(ArrayRef<int>)> use) {
    size_t most = llvm::popcount(scope.axes) <= maxGroupedAxes ? 3 : 2;
    AxisList group;
    forEachGroup(set, most, group, use);
  }

  void forEachGroup(AxisSet set, size_t most, AxisList &group,
                    function_ref<void(ArrayRef<int>)> use) {
    if (!group.empty())
      use(group);
    if (group.size() == most)
      return;
    for (int axis : mesh.getList(set)) {
      group.push_back(axis);
      forEachGroup(set & ~axisBit(axis), most, group, use);
      group.pop_back();
    }
  }

  /// Whether a list with gaps may occur.
  bool isInScope(const AxisList &axes) const {
    return !isStrided(axes) || (scope.allowsStrided &&
                                canLeaveGaps(axes, scope.axes & ~setOf(axes)));
  }

  /// Whether axes of `gone` can have left the gaps of `axes`.
  bool canLeaveGaps(ArrayRef<int> axes, AxisSet gone) const {
    while (!axes.empty() && !isGap(axes.front()))
      axes = axes.drop_front();
    if (axes.empty())
      return true;
    for (AxisSet subset = gone; subset != 0; subset = (subset - 1) & gone)
      if (mesh.getNumShards(subset) == -axes.front() &&
          canLeaveGaps(axes.drop_front(), gone & ~subset))
        return true;
    return false;
  }

  /// Takes a run of axes off `dim`.
  void addGathersAndExchanges(int dim) {
    ArrayRef<int> axes = from.dims[dim];
    for (size_t begin = 0; begin < axes.size(); ++begin)
      for (size_t end = begin + 1; end <= axes.size() && !isGap(axes[end - 1]);
           ++end) {
        ReshardStep step{ReshardStep::AllGather,
                         AxisList(axes.slice(begin, end - begin))};
        AxisList rest(axes.take_front(begin));
        rest.push_back(-mesh.getNumShards(step.axes));
        rest.append(axes.begin() + end, axes.end());
        normalizeGaps(rest);
        if (!isInScope(rest))
          continue;
        step.dim = dim;
        step.dimRuns = getGaps(axes.take_front(begin));
        step.after = from;
        step.after.dims[dim] = rest;
        for (int other = 0; other < rank; ++other)
          if (other != dim)
            addExchanges(step, other);
        steps.push_back(std::move(step));
      }
  }

  /// The all-to-alls that move what `gather` gathers to dimension `split`.
  void addExchanges(const ReshardStep &gather, int split) {
    for (Insertion &insertion : getInsertions(split, gather.axes)) {
      ReshardStep step = gather;
      step.kind = ReshardStep::AllToAll;
      step.concatDim = gather.dim;
      step.concatRuns = gather.dimRuns;
      step.dim = split;
      step.dimRuns = insertion.runs;
      step.after.dims[split] = std::move(insertion.axes);
      steps.push_back(std::move(step));
    }
  }

  void addSplits(ReshardStep::Kind kind, ArrayRef<int> group) {
    for (int dim = 0; dim < rank; ++dim)
      for (Insertion &insertion : getInsertions(dim, group)) {
        ReshardStep step{kind, AxisList(group)};
        step.dim = dim;
        step.dimRuns = insertion.runs;
        step.after = from;
        step.after.dims[dim] = std::move(insertion.axes);
        if (kind == ReshardStep::ReduceScatter)
          step.after.unreduced &= ~setOf(group);
        steps.push_back(std::move(step));
      }
  }

  /// The places where `group` can split dimension `dim`.
  std::vector<Insertion> getInsertions(int dim, ArrayRef<int> group) const {
    std::vector<Insertion> insertions;
    ArrayRef<int> axes = from.dims[dim];
    auto insert = [&](size_t position, size_t skip, int64_t before,
                      int64_t after) {
      AxisList list(axes.take_front(position));
      list.push_back(-before);
      list.append(group.begin(), group.end());
      list.push_back(-after);
      list.append(axes.begin() + position + skip, axes.end());
      normalizeGaps(list);
      if (isInScope(list))
        insertions.push_back(
            {std::move(list), getGaps(axes.take_front(position)) * before});
    };
    insert(axes.size(), 0, 1, 1);
    if (!scope.allowsStrided)
      return insertions;
    std::set<int64_t> sizes;
    for (AxisSet subset = scope.axes; subset != 0;
         subset = (subset - 1) & scope.axes)
      sizes.insert(mesh.getNumShards(subset));
    sizes.erase(1);
    for (int64_t size : sizes)
      insert(axes.size(), 0, size, 1);
    int64_t n = mesh.getNumShards(group);
    for (size_t position = 0; position < axes.size(); ++position) {
      int64_t gap = isGap(axes[position]) ? -axes[position] : 1;
      if (gap == 1 || gap % n != 0)
        continue;
      insert(position, 1, 1, gap / n);
      for (int64_t size : sizes)
        if ((gap / n) % size == 0)
          insert(position, 1, size, gap / n / size);
    }
    return insertions;
  }

  /// Rearranges axes such that every run of them between gaps keeps its number
  /// of shards.
  void addPermutes() {
    AxisSet pool = scope.axes & ~from.unreduced;
    if (from.getAxes() == 0 || llvm::popcount(scope.axes) > maxPermutedAxes)
      return;
    SmallVector<AxisList, 2> dims(rank);
    enumeratePermutes(dims, 0, 0, 1, pool);
  }

  /// `wanted` shards are still to be put where entries before `position` of
  /// dimension `dim` were.
  void enumeratePermutes(SmallVector<AxisList, 2> &dims, int dim,
                         size_t position, int64_t wanted, AxisSet pool) {
    if (wanted > 1) {
      for (int axis : mesh.getList(pool)) {
        if (wanted % mesh.getSize(axis) != 0)
          continue;
        dims[dim].push_back(axis);
        enumeratePermutes(dims, dim, position, wanted / mesh.getSize(axis),
                          pool & ~axisBit(axis));
        dims[dim].pop_back();
      }
      return;
    }
    if (dim == rank)
      return addPermuteTo(dims);
    ArrayRef<int> axes = from.dims[dim];
    if (position == axes.size())
      return enumeratePermutes(dims, dim + 1, 0, 1, pool);
    if (isGap(axes[position])) {
      dims[dim].push_back(axes[position]);
      enumeratePermutes(dims, dim, position + 1, 1, pool);
      dims[dim].pop_back();
      return;
    }
    for (; position < axes.size() && !isGap(axes[position]); ++position)
      wanted *= mesh.getSize(axes[position]);
    enumeratePermutes(dims, dim, position, wanted, pool);
  }

  void addPermuteTo(const SmallVector<AxisList, 2> &dims) {
    Layout to = from;
    to.dims = dims;
    for (const AxisList &axes : dims)
      if (!isInScope(axes))
        return;
    if (auto step = getPermuteTo(to))
      steps.push_back(std::move(*step));
  }

  /// The permute to the dimensions of `to`, if one does it.
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
      before |= setOf(now);
      after |= setOf(then);
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
  std::vector<ReshardStep> steps;
};

/// Whether a dimension of `size` may go between lists, of which `longer` has
/// everything that tells its parts apart.
bool isAligned(int64_t size, ArrayRef<int> longer, ArrayRef<int> shorter,
               const MeshAxes &mesh) {
  if (isStrided(longer) || isStrided(shorter))
    return size % mesh.getNumParts(longer) == 0 &&
           size % mesh.getNumParts(shorter) == 0;
  int64_t major = mesh.getNumShards(shorter);
  int64_t minor = mesh.getNumShards(longer) / major;
  return major == 1 ||
         ceilDiv(size, major * minor) * minor == ceilDiv(size, major);
}

} // namespace

std::vector<ReshardStep> shardc::getStepsFrom(const Layout &from,
                                              const LayoutScope &scope,
                                              const MeshAxes &mesh) {
  return StepEnumerator(from, scope, mesh).run();
}

CollectiveKind shardc::getCollectiveKind(ReshardStep::Kind kind) {
  switch (kind) {
  case ReshardStep::Slice:
    break;
  case ReshardStep::AllGather:
    return CollectiveKind::AllGather;
  case ReshardStep::ReduceScatter:
    return CollectiveKind::ReduceScatter;
  case ReshardStep::AllReduce:
    return CollectiveKind::AllReduce;
  case ReshardStep::AllToAll:
    return CollectiveKind::AllToAll;
  case ReshardStep::CollectivePermute:
    return CollectiveKind::CollectivePermute;
  }
  llvm_unreachable("a slice is no collective");
}

std::optional<double> shardc::getStepBytes(const ReshardStep &step,
                                           const Layout &from,
                                           ArrayRef<int64_t> shape,
                                           int64_t elementBytes,
                                           const MeshAxes &mesh) {
  auto bytesOf = [&](const Layout &layout) {
    return double(layout.getLocalElements(shape, mesh) * elementBytes);
  };
  double n = mesh.getNumShards(step.axes);
  const Layout &to = step.after;
  switch (step.kind) {
  case ReshardStep::AllReduce:
    return 2 * (n - 1) / n * bytesOf(from);
  case ReshardStep::CollectivePermute:
    for (auto [size, axes] : llvm::zip_equal(shape, from.dims))
      if (isStrided(axes) && size % mesh.getNumParts(axes) != 0)
        return std::nullopt;
    return bytesOf(from);
  case ReshardStep::Slice:
  case ReshardStep::ReduceScatter:
    if (!isAligned(shape[step.dim], to.dims[step.dim], from.dims[step.dim],
                   mesh))
      return std::nullopt;
    return step.kind == ReshardStep::Slice ? 0 : (n - 1) * bytesOf(to);
  case ReshardStep::AllGather:
    if (!isAligned(shape[step.dim], from.dims[step.dim], to.dims[step.dim],
                   mesh))
      return std::nullopt;
    return (n - 1) * bytesOf(from);
  case ReshardStep::AllToAll: {
    if (!isAligned(shape[step.concatDim], from.dims[step.concatDim],
                   to.dims[step.concatDim], mesh) ||
        !isAligned(shape[step.dim], to.dims[step.dim], from.dims[step.dim],
                   mesh))
      return std::nullopt;
    // n equal parts of the split dimension, before they are concatenated.
    Layout parts = from;
    parts.dims[step.dim] = to.dims[step.dim];
    return (n - 1) * bytesOf(parts);
  }
  }
  return std::nullopt;
}

std::vector<AxisList> shardc::getAxisLists(AxisSet axes, bool allowGaps,
                                           const MeshAxes &mesh) {
  std::vector<AxisList> lists;
  std::set<AxisList> seen;
  auto extend = [&](auto &&self, const AxisList &prefix, AxisSet rest) -> void {
    AxisList list = prefix;
    normalizeGaps(list);
    // What ends in a gap is listed without it.
    if ((prefix.empty() || !isGap(prefix.back())) && seen.insert(list).second)
      lists.push_back(list);
    for (int axis : mesh.getList(rest)) {
      AxisList next = prefix;
      next.push_back(axis);
      self(self, next, rest & ~axisBit(axis));
      if (!allowGaps)
        continue;
      next.back() = -mesh.getSize(axis);
      self(self, next, rest & ~axisBit(axis));
    }
  };
  extend(extend, {}, axes);
  return lists;
}
