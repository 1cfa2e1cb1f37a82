//===- ReshardPlanner.cpp - The cheapest way between layouts --------------===//

#include "shardc/Reshard/ReshardPlanner.h"

using namespace llvm;
using namespace shardc;

/// With more axes the layouts are too many to look at all of them.
static constexpr int maxEnumeratedAxes = 4;

static AxisSet getShardingAxes(const MeshAxes &mesh) {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (mesh.getSize(axis) > 1)
      axes |= axisBit(axis);
  return axes;
}

ReshardPlanner::ReshardPlanner(const MeshAxes &mesh, bool usesAllAxes,
                               const PartPrices &prices,
                               std::shared_ptr<LayoutGraphs> graphs)
    : mesh(mesh), usesAllAxes(usesAllAxes), prices(prices),
      unrestricted(prices),
      graphs(graphs ? graphs : std::make_shared<LayoutGraphs>(mesh)) {
  for (CollectiveCosts &part : unrestricted) {
    part.forbidden.clear();
    part.allowed.reset();
  }
}

AxisSet ReshardPlanner::getScope(ArrayRef<Layout> layouts) const {
  AxisSet axes = 0;
  bool takesAll = usesAllAxes;
  for (const Layout &layout : layouts) {
    axes |= layout.getAxes() | layout.unreduced;
    // Any axis may have left a gap.
    takesAll |= layout.isStrided();
  }
  return takesAll ? getShardingAxes(mesh) : axes;
}

ReshardPlanner::Tensor &ReshardPlanner::getTensor(const Layout &from,
                                                  ArrayRef<Layout> to,
                                                  ArrayRef<int64_t> shape,
                                                  int64_t elementBytes,
                                                  Part part) {
  SmallVector<Layout> ends(to);
  ends.push_back(from);
  AxisSet axes = getScope(ends);
  size_t index = static_cast<size_t>(part);
  const CollectiveCosts &own = prices[index];
  Tensor &tensor = getTensor(axes, shape, elementBytes, own);
  if (!own.allowed && own.forbidden.empty())
    return tensor;
  bool isReachable = llvm::popcount(axes) <= maxEnumeratedAxes;
  if (isReachable) {
    LayoutGraph &graph = tensor.table.getGraph();
    graph.enumerate();
    int source = graph.getId(from);
    for (const Layout &layout : to)
      isReachable &=
          tensor.table.get(source, graph.getId(layout)) < unreachable;
  }
  if (isReachable)
    return tensor;
  return getTensor(axes, shape, elementBytes, unrestricted[index]);
}

ReshardPlanner::Tensor &
ReshardPlanner::getTensor(AxisSet axes, ArrayRef<int64_t> shape,
                          int64_t elementBytes, const CollectiveCosts &prices) {
  LayoutScope scope{axes, llvm::popcount(axes) <= maxStridedAxes};
  LayoutGraph &graph = graphs->get(scope, shape.size());
  return tensors
      .try_emplace({axes, shape.vec(), elementBytes, &prices}, graph, prices,
                   shape, elementBytes)
      .first->second;
}

/// Joins splits of one dimension that follow each other into one step, where
/// `prices` allows it.
static void joinSplits(SmallVectorImpl<ReshardStep> &steps,
                       const CollectiveCosts &prices) {
  auto isAllowed = [&](const ReshardStep &lhs, const ReshardStep &rhs) {
    AxisSet axes = 0;
    for (int axis : lhs.axes)
      axes |= axisBit(axis);
    for (int axis : rhs.axes)
      axes |= axisBit(axis);
    return lhs.kind == ReshardStep::Slice ||
           prices.allows(CollectiveKind::ReduceScatter, axes);
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

ReshardPlan ReshardPlanner::plan(const Layout &from, const Layout &to,
                                 ArrayRef<int64_t> shape, int64_t elementBytes,
                                 Part part) {
  Tensor &tensor = getTensor(from, to, shape, elementBytes, part);
  LayoutGraph &graph = tensor.table.getGraph();
  int source = graph.getId(from), target = graph.getId(to);
  ReshardPlan plan;
  if (llvm::popcount(graph.getScope().axes) <= maxEnumeratedAxes) {
    plan.steps = tensor.table.getPath(source, target);
  } else {
    std::vector<Distance> distances(source + 1);
    distances[source].cost = 0;
    tensor.table.relax(distances, /*backward=*/false, target);
    plan.steps = tensor.table.getPath(distances, source, target);
  }
  joinSplits(plan.steps, prices[static_cast<size_t>(part)]);
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
  if (llvm::popcount(graph.getScope().axes) > maxEnumeratedAxes) {
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
