//===- ReshardPlanner.cpp - The cheapest reshards of a tensor -------------===//

#include "shardc/Reshard/ReshardPlanner.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

/// Over more bundles of axes there are too many layouts to enumerate.
static constexpr size_t maxEnumeratedBundles = 4;
/// The most edges that a search looks at where layouts are not enumerated.
static constexpr int64_t maxSearchedEdges = 200'000;

ReshardPlanner::ReshardPlanner(const MeshAxes &mesh, bool usesAllAxes,
                               const CostsByPart &collectiveCosts,
                               std::shared_ptr<LayoutGraphs> graphs)
    : mesh(mesh), usesAllAxes(usesAllAxes), collectiveCosts(collectiveCosts),
      unrestricted(collectiveCosts),
      graphs(graphs ? graphs : std::make_shared<LayoutGraphs>(mesh)) {
  for (CollectiveCosts &part : unrestricted) {
    part.forbidden.clear();
    part.allowed.reset();
  }
}

/// The axis behind `axis` in every layout of `layouts` that has it on a
/// dimension; -1 if there is none.
static int getFollower(int axis, ArrayRef<Layout> layouts) {
  int follower = -1;
  for (const Layout &layout : layouts)
    for (const AxisList &axes : layout.dims) {
      const int *place = llvm::find(axes, axis);
      if (place == axes.end())
        continue;
      int next = place + 1 == axes.end() ? -1 : place[1];
      if (next < 0 || (follower >= 0 && next != follower))
        return -1;
      follower = next;
    }
  return follower;
}

/// Whether `first` and `second` form a bundle: in every layout of `layouts`
/// they are adjacent or both absent, and partial sums over one are so over
/// both.
static bool moveTogether(int first, int second, ArrayRef<Layout> layouts) {
  return llvm::all_of(layouts, [&](const Layout &layout) {
    auto has = [](AxisSet set, int axis) { return (set & axisBit(axis)) != 0; };
    if (has(layout.unreduced, first) != has(layout.unreduced, second))
      return false;
    return llvm::all_of(layout.dims, [&](const AxisList &axes) {
      const int *place = llvm::find(axes, first);
      if (place == axes.end())
        return !llvm::is_contained(axes, second);
      return place + 1 != axes.end() && place[1] == second;
    });
  });
}

/// The fewest bundles of the axes of `scope` that `layouts` allow.
static std::vector<AxisList> getBundles(const LayoutScope &scope,
                                        ArrayRef<Layout> layouts,
                                        const MeshAxes &mesh) {
  AxisSet sharding = 0;
  for (const Layout &layout : layouts)
    sharding |= layout.getAxes();
  // By axis, the next one in its bundle.
  std::map<int, int> followers;
  AxisSet isFollower = 0;
  auto follow = [&](int axis, int next) {
    if ((isFollower & axisBit(next)) || !moveTogether(axis, next, layouts))
      return false;
    followers[axis] = next;
    isFollower |= axisBit(next);
    return true;
  };
  AxisList axes = mesh.getList(scope.axes);
  for (auto [index, axis] : llvm::enumerate(axes)) {
    if (sharding & axisBit(axis)) {
      if (int next = getFollower(axis, layouts); next >= 0)
        follow(axis, next);
      continue;
    }
    for (int next : ArrayRef<int>(axes).drop_front(index + 1))
      if (!(sharding & axisBit(next)) && follow(axis, next))
        break;
  }
  std::vector<AxisList> bundles;
  for (int axis : axes) {
    if (isFollower & axisBit(axis))
      continue;
    bundles.push_back({axis});
    for (auto it = followers.find(axis); it != followers.end();
         it = followers.find(it->second))
      bundles.back().push_back(it->second);
  }
  return bundles;
}

LayoutScope ReshardPlanner::getScope(ArrayRef<Layout> layouts) const {
  LayoutScope scope;
  bool takesAll = usesAllAxes;
  for (const Layout &layout : layouts) {
    scope.axes |= layout.getAxes() | layout.unreduced;
    // Any axis may have left a gap.
    takesAll |= layout.isStrided();
  }
  if (takesAll)
    scope.axes = getShardingAxes(mesh);
  size_t numBundles = llvm::popcount(scope.axes);
  if (numBundles > maxEnumeratedBundles) {
    scope.bundles = getBundles(scope, layouts, mesh);
    // A gap may be narrower than a bundle.
    bool allowsAll = llvm::all_of(layouts, [&](const Layout &layout) {
      return llvm::all_of(layout.dims, [&](const AxisList &axes) {
        return scope.allows(axes, mesh);
      });
    });
    if (allowsAll)
      numBundles = scope.bundles.size();
    else
      scope.bundles.clear();
  }
  scope.allowsStrided = numBundles <= maxStridedAxes;
  return scope;
}

static bool isEnumerated(const LayoutGraph &graph) {
  return graph.getScope().getBundles(graph.getMesh()).size() <=
         maxEnumeratedBundles;
}

ReshardPlanner::Tensor &ReshardPlanner::getTensor(const Layout &from,
                                                  ArrayRef<Layout> to,
                                                  ArrayRef<int64_t> shape,
                                                  int64_t elementBytes,
                                                  Part part) {
  SmallVector<Layout> ends(to);
  ends.push_back(from);
  LayoutGraph &graph = graphs->get(getScope(ends), shape.size());
  size_t index = static_cast<size_t>(part);
  const CollectiveCosts &own = collectiveCosts[index];
  Tensor &tensor = getTensor(graph, shape, elementBytes, own);
  if (!own.allowed && own.forbidden.empty())
    return tensor;
  bool isReachable = isEnumerated(graph);
  if (isReachable) {
    graph.enumerate();
    int source = graph.getId(from);
    for (const Layout &layout : to)
      isReachable &=
          tensor.table.get(source, graph.getId(layout)) < unreachable;
  }
  if (isReachable)
    return tensor;
  return getTensor(graph, shape, elementBytes, unrestricted[index]);
}

ReshardPlanner::Tensor &
ReshardPlanner::getTensor(LayoutGraph &graph, ArrayRef<int64_t> shape,
                          int64_t elementBytes,
                          const CollectiveCosts &collectiveCosts) {
  return tensors
      .try_emplace({&graph, shape.vec(), elementBytes, &collectiveCosts}, graph,
                   collectiveCosts, shape, elementBytes)
      .first->second;
}

/// A path that always exists: ends partial sums, gathers every dimension that
/// changes, and slices it anew.
static SmallVector<ReshardStep, 2>
getPlainWay(const Layout &from, const Layout &to, ArrayRef<int64_t> shape,
            int64_t elementBytes, const MeshAxes &mesh) {
  SmallVector<ReshardStep, 2> steps;
  Layout layout = from;
  auto add = [&](ReshardStep step) {
    std::optional<double> bytes =
        getStepBytes(step, layout, shape, elementBytes, mesh);
    assert(bytes && "whole dimensions can be cut and gathered");
    step.wireBytes = static_cast<int64_t>(std::ceil(*bytes - 1e-6));
    layout = step.after;
    steps.push_back(std::move(step));
  };
  if (AxisSet reduced = from.unreduced & ~to.unreduced) {
    ReshardStep step{ReshardStep::AllReduce, mesh.getList(reduced)};
    step.after = layout;
    step.after.unreduced = to.unreduced;
    add(std::move(step));
  }
  auto getGaps = [&](ArrayRef<int> axes) {
    return mesh.getNumParts(axes) / mesh.getNumShards(axes);
  };
  SmallVector<int> changed;
  for (size_t dim = 0; dim < from.dims.size(); ++dim)
    if (from.dims[dim] != to.dims[dim])
      changed.push_back(dim);
  // Runs of axes between gaps, the minor-most first.
  for (int dim : changed)
    while (!layout.dims[dim].empty()) {
      ArrayRef<int> axes = layout.dims[dim], kept = axes;
      while (!kept.empty() && !isGap(kept.back()))
        kept = kept.drop_back();
      ReshardStep step{ReshardStep::AllGather,
                       AxisList(axes.drop_front(kept.size()))};
      step.dim = dim;
      step.dimRuns = getGaps(kept);
      step.after = layout;
      step.after.dims[dim] = AxisList(kept);
      normalizeGaps(step.after.dims[dim]);
      add(std::move(step));
    }
  for (int dim : changed)
    for (ArrayRef<int> axes = to.dims[dim], rest = axes; !rest.empty();) {
      while (isGap(rest.front()))
        rest = rest.drop_front();
      ArrayRef<int> run =
          rest.take_while([](int axis) { return !isGap(axis); });
      ReshardStep step{ReshardStep::Slice, AxisList(run)};
      rest = rest.drop_front(run.size());
      size_t end = axes.size() - rest.size();
      step.dim = dim;
      step.dimRuns = getGaps(axes.take_front(end));
      step.after = layout;
      step.after.dims[dim] = AxisList(axes.take_front(end));
      add(std::move(step));
    }
  return steps;
}

/// Joins splits of one dimension that follow each other into one step, where
/// `collectiveCosts` allows it.
static void joinSplits(SmallVectorImpl<ReshardStep> &steps,
                       const CollectiveCosts &collectiveCosts) {
  auto isAllowed = [&](const ReshardStep &lhs, const ReshardStep &rhs) {
    AxisSet axes = 0;
    for (int axis : lhs.axes)
      axes |= axisBit(axis);
    for (int axis : rhs.axes)
      axes |= axisBit(axis);
    return lhs.kind == ReshardStep::Slice ||
           collectiveCosts.allows(CollectiveKind::ReduceScatter, axes);
  };
  SmallVector<ReshardStep, 2> joined;
  for (ReshardStep &step : steps) {
    bool isSplit = step.kind == ReshardStep::Slice ||
                   step.kind == ReshardStep::ReduceScatter;
    if (isSplit && !joined.empty() && joined.back().kind == step.kind &&
        joined.back().dim == step.dim && joined.back().dimRuns == 1 &&
        step.dimRuns == 1 && !step.after.isStrided() &&
        isAllowed(joined.back(), step)) {
      step.axes.insert(step.axes.begin(), joined.back().axes.begin(),
                       joined.back().axes.end());
      step.wireBytes += joined.back().wireBytes;
      joined.back() = std::move(step);
    } else {
      joined.push_back(std::move(step));
    }
  }
  steps = std::move(joined);
}

/// Whether there is a path to `target`. Uneven sizes may forbid all steps that
/// put single axes on a dimension one after the other.
static bool isReached(const std::vector<Distance> &distances, int target) {
  return target < static_cast<int>(distances.size()) &&
         distances[target].cost < unreachable;
}

ReshardPlan ReshardPlanner::plan(const Layout &from, const Layout &to,
                                 ArrayRef<int64_t> shape, int64_t elementBytes,
                                 Part part) {
  Tensor &tensor = getTensor(from, to, shape, elementBytes, part);
  LayoutGraph &graph = tensor.table.getGraph();
  int source = graph.getId(from), target = graph.getId(to);
  std::vector<Distance> found;
  if (!isEnumerated(graph)) {
    found.resize(source + 1);
    found[source].cost = 0;
    tensor.table.relax(found, /*backward=*/false, target, maxSearchedEdges);
  }
  const std::vector<Distance> &distances =
      isEnumerated(graph) ? tensor.table.getFrom(source) : found;
  ReshardPlan plan;
  plan.steps = isReached(distances, target)
                   ? tensor.table.getPath(distances, source, target)
                   : getPlainWay(from, to, shape, elementBytes, mesh);
  joinSplits(plan.steps, collectiveCosts[static_cast<size_t>(part)]);
  for (const ReshardStep &step : plan.steps)
    plan.wireBytes += step.wireBytes;
  return plan;
}

SmallVector<Delivery> ReshardPlanner::planTree(const Layout &from,
                                               ArrayRef<Layout> wanted,
                                               ArrayRef<int64_t> shape,
                                               int64_t elementBytes,
                                               Part part) {
  SmallVector<Delivery> deliveries;
  for (const Layout &layout : wanted)
    deliveries.push_back({layout, -1});
  if (wanted.size() < 2)
    return deliveries;
  Tensor &tensor = getTensor(from, wanted, shape, elementBytes, part);
  LayoutGraph &graph = tensor.table.getGraph();
  bool isSearched = isEnumerated(graph);
  if (isSearched) {
    const std::vector<Distance> &distances =
        tensor.table.getFrom(graph.getId(from));
    isSearched = llvm::all_of(wanted, [&](const Layout &layout) {
      return isReached(distances, graph.getId(layout));
    });
  }
  if (!isSearched) {
    for (auto [index, layout] : llvm::enumerate(wanted)) {
      int64_t best = plan(from, layout, shape, elementBytes).wireBytes;
      for (size_t earlier = 0; earlier < index; ++earlier) {
        if (layout.unreduced & ~wanted[earlier].unreduced)
          continue;
        int64_t bytes =
            plan(wanted[earlier], layout, shape, elementBytes).wireBytes;
        if (bytes < best) {
          best = bytes;
          deliveries[index].source = earlier;
        }
      }
    }
    return deliveries;
  }

  std::map<int, int> indices;
  std::vector<int> ids;
  for (auto [index, layout] : llvm::enumerate(wanted)) {
    ids.push_back(graph.getId(layout));
    indices[ids.back()] = index;
  }
  llvm::sort(ids);
  SmallVector<int> places;
  for (const MulticastTrees::Node &node :
       tensor.trees.getTree(graph.getId(from), ids)) {
    auto [it, isNew] = indices.try_emplace(node.layout, deliveries.size());
    if (isNew)
      deliveries.push_back({graph.getLayout(node.layout), -1});
    places.push_back(it->second);
    deliveries[it->second].source = node.source < 0 ? -1 : places[node.source];
  }
  return deliveries;
}
