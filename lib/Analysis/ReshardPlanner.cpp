//===- ReshardPlanner.cpp - The cheapest way between layouts --------------===//

#include "shardc/Analysis/ReshardPlanner.h"

using namespace mlir;
using namespace shardc;

/// With more axes the layouts are too many to look at all of them.
static constexpr int maxEnumeratedAxes = 4;

const CollectivePrices ReshardPlanner::bytesOnWire;

static AxisSet getShardingAxes(const MeshAxes &mesh) {
  AxisSet axes = 0;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (mesh.getSize(axis) > 1)
      axes |= axisBit(axis);
  return axes;
}

ReshardPlanner::ReshardPlanner(const MeshAxes &mesh, bool usesAllAxes,
                               const CollectivePrices &prices)
    : mesh(mesh), usesAllAxes(usesAllAxes), prices(prices) {}

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

ReshardPlanner::Tensor &ReshardPlanner::getTensor(AxisSet axes,
                                                  ArrayRef<int64_t> shape,
                                                  int64_t elementBytes) {
  LayoutScope scope{axes, llvm::popcount(axes) <= maxStridedAxes};
  LayoutGraph &graph =
      graphs.try_emplace({axes, shape.size()}, mesh, scope, shape.size())
          .first->second;
  return tensors
      .try_emplace({axes, shape.vec(), elementBytes}, graph, prices, shape,
                   elementBytes)
      .first->second;
}

/// Joins splits of one dimension that follow each other into one step.
static void joinSplits(SmallVectorImpl<ReshardStep> &steps) {
  SmallVector<ReshardStep, 2> joined;
  for (ReshardStep &step : steps) {
    bool isSplit = step.kind == ReshardStep::Slice ||
                   step.kind == ReshardStep::ReduceScatter;
    if (isSplit && !joined.empty() && joined.back().kind == step.kind &&
        joined.back().dim == step.dim && joined.back().dimRuns == 1 &&
        step.dimRuns == 1 && !step.after.isStrided()) {
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
                                 ArrayRef<int64_t> shape,
                                 int64_t elementBytes) {
  Tensor &tensor = getTensor(getScope({from, to}), shape, elementBytes);
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
  joinSplits(plan.steps);
  for (const ReshardStep &step : plan.steps)
    plan.wireBytes += step.wireBytes;
  return plan;
}

SmallVector<Delivery> ReshardPlanner::planTree(const Layout &from,
                                               ArrayRef<Layout> wanted,
                                               ArrayRef<int64_t> shape,
                                               int64_t elementBytes) {
  SmallVector<Delivery> deliveries;
  for (const Layout &layout : wanted)
    deliveries.push_back({layout, -1});
  if (wanted.size() < 2)
    return deliveries;
  SmallVector<Layout> ends(wanted);
  ends.push_back(from);
  Tensor &tensor = getTensor(getScope(ends), shape, elementBytes);
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
  for (const DeliveryTrees::Node &node :
       tensor.trees.getTree(graph.getId(from), ids)) {
    auto [it, isNew] = indices.try_emplace(node.layout, deliveries.size());
    if (isNew)
      deliveries.push_back({graph.getLayout(node.layout), -1});
    places.push_back(it->second);
    deliveries[it->second].source = node.source < 0 ? -1 : places[node.source];
  }
  return deliveries;
}
