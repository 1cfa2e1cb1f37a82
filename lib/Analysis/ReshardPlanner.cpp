//===- ReshardPlanner.cpp - The cheapest way between layouts --------------===//
//
// A dimension of size s over n devices has blocks of ceil(s/n). Taking minor
// axes off a dimension (or putting them on) keeps block boundaries only if the
// remaining major axes' blocks are whole numbers of the smaller ones; steps for
// which they are not are left out, so that every path is exact for sizes that
// do not divide.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ReshardPlanner.h"

#include "shardc/Analysis/WireBytes.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace shardc;

namespace {

/// Enumerates the steps out of one layout.
class StepEnumerator {
public:
  StepEnumerator(const MeshAxes &mesh, const Layout &from, const Layout &to,
                 ArrayRef<int64_t> shape, int64_t elementBytes)
      : mesh(mesh), from(from), to(to), shape(shape),
        elementBytes(elementBytes) {
    used = from.getAxes() | from.unreduced;
    // Axes that neither end uses cannot make a path cheaper.
    relevant = used | to.getAxes();
  }

  SmallVector<ReshardStep> run() {
    addReductions();
    for (int dim = 0, rank = shape.size(); dim < rank; ++dim) {
      addGathersAndExchanges(dim);
      addSlicesAndScatters(dim);
    }
    addPermutes();
    return std::move(steps);
  }

private:
  /// Whether blocks of dimension `dim` over `minor` more shards than `major`
  /// tile those over `major`.
  bool isAligned(int dim, int64_t major, int64_t minor) const {
    int64_t size = shape[dim];
    return major == 1 ||
           ceilDiv(size, major * minor) * minor == ceilDiv(size, major);
  }

  int64_t bytesOf(const Layout &layout) const {
    return layout.getLocalElements(shape, mesh) * elementBytes;
  }

  void add(ReshardStep step, CollectiveKind kind, int64_t bytes) {
    step.wireBytes = getWireBytes(kind, bytes, mesh.getNumShards(step.axes));
    steps.push_back(std::move(step));
  }

  /// All-reduce over any axes that need it.
  void addReductions() {
    AxisSet all = from.unreduced & ~to.unreduced;
    for (AxisSet subset = all; subset != 0; subset = (subset - 1) & all) {
      ReshardStep step{ReshardStep::AllReduce, mesh.getList(subset)};
      step.after = from;
      step.after.unreduced &= ~subset;
      add(step, CollectiveKind::AllReduce, bytesOf(from));
    }
  }

  /// Takes one to all of the minor axes off `dim`.
  void addGathersAndExchanges(int dim) {
    ArrayRef<int> axes = from.dims[dim];
    for (size_t count = 1; count <= axes.size(); ++count) {
      ArrayRef<int> moved = axes.take_back(count);
      int64_t n = mesh.getNumShards(moved);
      int64_t rest = mesh.getNumShards(axes.drop_back(count));
      if (!isAligned(dim, rest, n))
        continue;
      ReshardStep step{ReshardStep::AllGather, AxisList(moved)};
      step.dim = dim;
      step.after = from;
      step.after.dims[dim] = AxisList(axes.drop_back(count));
      add(step, CollectiveKind::AllGather, n * bytesOf(from));
      for (int other = 0, rank = shape.size(); other < rank; ++other)
        if (other != dim)
          addExchange(step, other);
    }
  }

  /// The all-to-all that moves what `gather` gathers to dimension `split`.
  void addExchange(const ReshardStep &gather, int split) {
    int64_t n = mesh.getNumShards(gather.axes);
    if (!isAligned(split, mesh.getNumShards(from.dims[split]), n))
      return;
    ReshardStep step = gather;
    step.kind = ReshardStep::AllToAll;
    step.dim = split;
    step.concatDim = gather.dim;
    step.after.dims[split].append(gather.axes);
    // n equal parts of the split dimension, at the size before concatenation.
    Layout parts = from;
    parts.dims[split].append(gather.axes);
    add(step, CollectiveKind::AllToAll, n * bytesOf(parts));
  }

  /// Puts axes on `dim`: any one, or the next ones that the target has.
  void addSlicesAndScatters(int dim) {
    for (int axis : mesh.getList(relevant))
      addSliceOrScatter(dim, {axis});
    ArrayRef<int> now = from.dims[dim], goal = to.dims[dim];
    if (now.size() >= goal.size() || goal.take_front(now.size()) != now)
      return;
    for (size_t count = 2; count <= goal.size() - now.size(); ++count)
      addSliceOrScatter(dim, goal.slice(now.size(), count));
  }

  void addSliceOrScatter(int dim, ArrayRef<int> axes) {
    AxisSet set = 0;
    for (int axis : axes)
      set |= axisBit(axis);
    bool isSlice = (set & used) == 0;
    bool isScatter = (set & from.unreduced & ~to.unreduced) == set;
    if (!isSlice && !isScatter)
      return;
    int64_t n = mesh.getNumShards(axes);
    if (!isAligned(dim, mesh.getNumShards(from.dims[dim]), n))
      return;
    ReshardStep step{isSlice ? ReshardStep::Slice : ReshardStep::ReduceScatter,
                     AxisList(axes)};
    step.dim = dim;
    step.after = from;
    step.after.dims[dim].append(axes.begin(), axes.end());
    if (isSlice) {
      steps.push_back(std::move(step));
      return;
    }
    step.after.unreduced &= ~set;
    add(step, CollectiveKind::ReduceScatter, n * bytesOf(step.after));
  }

  /// Rearranges axes such that every dimension keeps its number of shards.
  void addPermutes() {
    AxisSet pool = relevant & ~from.unreduced;
    if (from.getAxes() == 0)
      return;
    if (llvm::popcount(pool) > 4) {
      if ((to.getAxes() & from.unreduced) == 0)
        addPermuteTo(to.dims);
      return;
    }
    SmallVector<AxisList, 2> dims(shape.size());
    enumeratePermutes(dims, 0, pool);
  }

  void enumeratePermutes(SmallVector<AxisList, 2> &dims, size_t dim,
                         AxisSet pool) {
    if (dim == dims.size())
      return addPermuteTo(dims);
    int64_t wanted = mesh.getNumShards(from.dims[dim]);
    int64_t have = mesh.getNumShards(dims[dim]);
    if (have == wanted) {
      enumeratePermutes(dims, dim + 1, pool);
      return;
    }
    for (int axis : mesh.getList(pool)) {
      if (wanted % (have * mesh.getSize(axis)) != 0)
        continue;
      dims[dim].push_back(axis);
      enumeratePermutes(dims, dim, pool & ~axisBit(axis));
      dims[dim].pop_back();
    }
  }

  void addPermuteTo(const SmallVector<AxisList, 2> &dims) {
    if (dims == from.dims)
      return;
    // Both orders list the axes dimension by dimension; those that only one
    // side uses come last on the other.
    ReshardStep step{ReshardStep::CollectivePermute, {}};
    AxisSet before = 0, after = 0;
    for (auto [now, then] : llvm::zip_equal(from.dims, dims)) {
      if (mesh.getNumShards(now) != mesh.getNumShards(then))
        return;
      if (now == then)
        continue;
      step.axes.append(now);
      step.targetAxes.append(then);
      for (int axis : now)
        before |= axisBit(axis);
      for (int axis : then)
        after |= axisBit(axis);
    }
    for (int axis : mesh.getList(after & ~before))
      step.axes.push_back(axis);
    for (int axis : mesh.getList(before & ~after))
      step.targetAxes.push_back(axis);
    step.after = from;
    step.after.dims = dims;
    add(step, CollectiveKind::CollectivePermute, bytesOf(from));
  }

  const MeshAxes &mesh;
  const Layout &from, &to;
  ArrayRef<int64_t> shape;
  int64_t elementBytes;
  AxisSet used = 0, relevant = 0;
  SmallVector<ReshardStep> steps;
};

/// The best way known to a layout.
struct Visit {
  int64_t bytes = 0;
  int64_t numSteps = 0;
  std::optional<ReshardStep> step;
  Layout previous;
  bool isDone = false;
};

} // namespace

SmallVector<ReshardStep> ReshardPlanner::getSteps(const Layout &from,
                                                  const Layout &to,
                                                  ArrayRef<int64_t> shape,
                                                  int64_t elementBytes) const {
  return StepEnumerator(mesh, from, to, shape, elementBytes).run();
}

const ReshardPlan &ReshardPlanner::plan(const Layout &from, const Layout &to,
                                        ArrayRef<int64_t> shape,
                                        int64_t elementBytes) {
  Key key(from, to, std::vector<int64_t>(shape.begin(), shape.end()),
          elementBytes);
  auto [it, isNew] = plans.try_emplace(std::move(key));
  if (isNew)
    it->second = search(from, to, shape, elementBytes);
  return it->second;
}

ReshardPlan ReshardPlanner::search(const Layout &from, const Layout &to,
                                   ArrayRef<int64_t> shape,
                                   int64_t elementBytes) const {
  std::map<Layout, Visit> visits;
  // (bytes, steps, order of discovery) of layouts to expand.
  using Entry = std::tuple<int64_t, int64_t, int64_t>;
  std::set<Entry> queue;
  std::vector<Layout> discovered;
  auto discover = [&](const Layout &layout, int64_t bytes, int64_t numSteps) {
    queue.emplace(bytes, numSteps, discovered.size());
    discovered.push_back(layout);
  };
  visits[from] = Visit();
  discover(from, 0, 0);
  while (!queue.empty()) {
    Layout layout = discovered[std::get<2>(*queue.begin())];
    queue.erase(queue.begin());
    Visit &visit = visits[layout];
    if (visit.isDone)
      continue;
    visit.isDone = true;
    if (layout == to)
      break;
    for (ReshardStep &step : getSteps(layout, to, shape, elementBytes)) {
      int64_t bytes = visit.bytes + step.wireBytes;
      int64_t numSteps = visit.numSteps + 1;
      auto [it, isNew] = visits.try_emplace(step.after);
      Visit &next = it->second;
      if (!isNew &&
          std::tie(next.bytes, next.numSteps) <= std::tie(bytes, numSteps))
        continue;
      discover(step.after, bytes, numSteps);
      next.bytes = bytes;
      next.numSteps = numSteps;
      next.previous = layout;
      next.step = std::move(step);
    }
  }

  ReshardPlan plan;
  auto it = visits.find(to);
  assert(it != visits.end() && "every layout can be gathered and sliced");
  plan.wireBytes = it->second.bytes;
  while (it->second.step) {
    plan.steps.push_back(*it->second.step);
    it = visits.find(it->second.previous);
  }
  std::reverse(plan.steps.begin(), plan.steps.end());
  return plan;
}

SmallVector<int> ReshardPlanner::planTree(const Layout &from,
                                          ArrayRef<Layout> wanted,
                                          ArrayRef<int64_t> shape,
                                          int64_t elementBytes) {
  int count = wanted.size();
  SmallVector<int> order(count), best(count, -1);
  std::iota(order.begin(), order.end(), 0);
  if (count <= 1)
    return best;
  std::optional<int64_t> bestBytes;
  do {
    SmallVector<int> sources(count, -1);
    int64_t bytes = 0;
    for (int position = 0; position < count; ++position) {
      int target = order[position];
      const Layout &to = wanted[target];
      int64_t cheapest = plan(from, to, shape, elementBytes).wireBytes;
      for (int earlier = 0; earlier < position; ++earlier) {
        const Layout &source = wanted[order[earlier]];
        // What is still to be reduced must be so at the source.
        if (to.unreduced & ~source.unreduced)
          continue;
        int64_t cost = plan(source, to, shape, elementBytes).wireBytes;
        if (cost < cheapest) {
          cheapest = cost;
          sources[target] = order[earlier];
        }
      }
      bytes += cheapest;
    }
    if (!bestBytes || bytes < *bestBytes) {
      bestBytes = bytes;
      best = sources;
    }
  } while (count <= 4 && std::next_permutation(order.begin(), order.end()));
  return best;
}
