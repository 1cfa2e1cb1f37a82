//===- ReshardSteps.cpp - The edges of the layout graph -------------------===//

#include "shardc/Reshard/ReshardSteps.h"

#include "ReshardPermutes.h"

#include <set>

using namespace llvm;
using namespace shardc;

namespace {

constexpr size_t maxGroupedBundles = 3;
constexpr int maxReducedBundles = 5;
/// Most layouts of matrices on three axes have fewer steps.
constexpr size_t usualSteps = 32;

/// Product of the gaps in `axes`.
int64_t getGaps(ArrayRef<int> axes) {
  int64_t gaps = 1;
  for (int axis : axes)
    gaps *= isGap(axis) ? -axis : 1;
  return gaps;
}

/// Whether some of `gone`, sets of axes that move together, can have left the
/// gaps of `axes`.
bool canLeaveGaps(ArrayRef<int> axes, ArrayRef<AxisSet> gone,
                  const MeshAxes &mesh) {
  while (!axes.empty() && !isGap(axes.front()))
    axes = axes.drop_front();
  if (axes.empty())
    return true;
  for (uint64_t subset = (uint64_t(1) << gone.size()) - 1; subset != 0;
       --subset) {
    int64_t shards = 1;
    SmallVector<AxisSet> rest;
    for (auto [index, together] : llvm::enumerate(gone)) {
      if (subset >> index & 1)
        shards *= mesh.getNumShards(together);
      else
        rest.push_back(together);
    }
    if (shards == -axes.front() && canLeaveGaps(axes.drop_front(), rest, mesh))
      return true;
  }
  return false;
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
      : from(from), scope(scope), mesh(mesh), rank(from.dims.size()),
        bundles(scope.getBundles(mesh)) {
    for (const AxisList &bundle : bundles) {
      starts |= axisBit(bundle.front());
      ends |= axisBit(bundle.back());
    }
  }

  std::vector<ReshardStep> run() {
    steps.reserve(usualSteps);
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
    llvm::append_range(steps, getPermutesFrom(from, scope, mesh));
    return std::move(steps);
  }

private:
  /// Bit i stands for bundle i.
  using BundleSet = uint64_t;

  /// The bundles within `axes`.
  BundleSet getBundleSet(AxisSet axes) const {
    BundleSet set = 0;
    for (auto [index, bundle] : llvm::enumerate(bundles))
      if ((getAxisSet(bundle) & ~axes) == 0)
        set |= BundleSet(1) << index;
    return set;
  }

  AxisSet getAxes(BundleSet set) const {
    AxisSet axes = 0;
    for (auto [index, bundle] : llvm::enumerate(bundles))
      if (set >> index & 1)
        axes |= getAxisSet(bundle);
    return axes;
  }

  void addReductions() {
    BundleSet all = getBundleSet(from.unreduced);
    auto add = [&](BundleSet set) {
      AxisSet axes = getAxes(set);
      ReshardStep step{ReshardStep::AllReduce, mesh.getList(axes)};
      step.after = from;
      step.after.unreduced &= ~axes;
      steps.push_back(std::move(step));
    };
    if (llvm::popcount(all) <= maxReducedBundles) {
      for (BundleSet subset = all; subset != 0; subset = (subset - 1) & all)
        add(subset);
      return;
    }
    add(all);
    for (BundleSet rest = all; rest != 0; rest &= rest - 1)
      add(rest & -rest);
  }

  /// Calls `use` with the axes of every ordered group of bundles of `axes`.
  void forEachGroup(AxisSet axes, function_ref<void(ArrayRef<int>)> use) {
    size_t most = bundles.size() <= maxGroupedBundles ? 3 : 2;
    AxisList group;
    forEachGroup(getBundleSet(axes), most, group, use);
  }

  void forEachGroup(BundleSet set, size_t most, AxisList &group,
                    function_ref<void(ArrayRef<int>)> use) {
    if (!group.empty())
      use(group);
    if (most == 0)
      return;
    for (auto [index, bundle] : llvm::enumerate(bundles)) {
      BundleSet bit = BundleSet(1) << index;
      if (!(set & bit))
        continue;
      group.append(bundle);
      forEachGroup(set & ~bit, most - 1, group, use);
      group.truncate(group.size() - bundle.size());
    }
  }

  /// Takes a run of axes off `dim`.
  void addGathersAndExchanges(int dim) {
    ArrayRef<int> axes = from.dims[dim];
    for (size_t begin = 0; begin < axes.size(); ++begin) {
      if (isGap(axes[begin]) || !(starts & axisBit(axes[begin])))
        continue;
      for (size_t end = begin + 1; end <= axes.size() && !isGap(axes[end - 1]);
           ++end) {
        if (!(ends & axisBit(axes[end - 1])))
          continue;
        ReshardStep step{ReshardStep::AllGather,
                         AxisList(axes.slice(begin, end - begin))};
        AxisList rest(axes.take_front(begin));
        rest.push_back(-mesh.getNumShards(step.axes));
        rest.append(axes.begin() + end, axes.end());
        normalizeGaps(rest);
        if (!scope.allows(rest, mesh))
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
  }

  /// The all-to-alls that move the axes of `gather` to dimension `split`.
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
          step.after.unreduced &= ~getAxisSet(group);
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
      if (scope.allows(list, mesh))
        insertions.push_back(
            {std::move(list), getGaps(axes.take_front(position)) * before});
    };
    insert(axes.size(), 0, 1, 1);
    if (!scope.allowsStrided)
      return insertions;
    std::set<int64_t> sizes;
    for (BundleSet subset = getBundleSet(scope.axes); subset != 0; --subset)
      sizes.insert(mesh.getNumShards(getAxes(subset)));
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

  const Layout &from;
  const LayoutScope &scope;
  const MeshAxes &mesh;
  int rank;
  std::vector<AxisList> bundles;
  /// The first and the last axes of bundles.
  AxisSet starts = 0, ends = 0;
  std::vector<ReshardStep> steps;
};

} // namespace

AxisSet shardc::getShardingAxes(const MeshAxes &mesh) {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (mesh.getSize(axis) > 1)
      axes |= axisBit(axis);
  return axes;
}

std::vector<AxisList> LayoutScope::getBundles(const MeshAxes &mesh) const {
  if (!bundles.empty())
    return bundles;
  std::vector<AxisList> alone;
  for (int axis : mesh.getList(axes))
    alone.push_back({axis});
  return alone;
}

bool LayoutScope::allows(ArrayRef<int> list, const MeshAxes &mesh) const {
  if (!isStrided(list))
    return true;
  if (!allowsStrided)
    return false;
  SmallVector<AxisSet> gone;
  for (const AxisList &bundle : getBundles(mesh))
    if (AxisSet together = getAxisSet(bundle); !(together & getAxisSet(list)))
      gone.push_back(together);
  return canLeaveGaps(list, gone, mesh);
}

std::vector<ReshardStep> shardc::getStepsFrom(const Layout &from,
                                              const LayoutScope &scope,
                                              const MeshAxes &mesh) {
  return StepEnumerator(from, scope, mesh).run();
}

std::vector<AxisList> shardc::getAxisLists(AxisSet axes, bool allowGaps,
                                           const MeshAxes &mesh) {
  std::vector<AxisList> lists;
  std::set<AxisList> seen;
  auto extend = [&](auto &&self, const AxisList &prefix, AxisSet rest) -> void {
    AxisList list = prefix;
    normalizeGaps(list);
    // A list that ends in a gap is the same as without it.
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
