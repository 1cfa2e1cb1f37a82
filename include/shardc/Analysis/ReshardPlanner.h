//===- ReshardPlanner.h - The cheapest way between layouts -----*- C++ -*-===//
//
// Shortest paths (Dijkstra) over the layouts of one tensor: each edge is one
// collective or a slice, its length the wire bytes per device. Among equally
// cheap paths one with the fewest steps is taken, then the first found, so that
// results are deterministic. A planner remembers what it has planned; use one
// per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_RESHARDPLANNER_H
#define SHARDC_ANALYSIS_RESHARDPLANNER_H

#include "shardc/Analysis/Layout.h"

#include <map>

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
  /// The layout after the step.
  Layout after = {};
  /// Bytes per device on the wire.
  int64_t wireBytes = 0;
};

/// A cheapest path.
struct ReshardPlan {
  llvm::SmallVector<ReshardStep, 2> steps;
  int64_t wireBytes = 0;
};

class ReshardPlanner {
public:
  explicit ReshardPlanner(const MeshAxes &mesh) : mesh(mesh) {}

  /// The cheapest path from `from` to `to` for a tensor of global `shape`.
  /// `to` may be unreduced only over axes that `from` is. The reference is
  /// valid as long as the planner.
  const ReshardPlan &plan(const Layout &from, const Layout &to,
                          llvm::ArrayRef<int64_t> shape, int64_t elementBytes);

  /// How to deliver one value in several layouts: for each of `wanted`
  /// (distinct, none equal to `from`) the index of the wanted layout that it is
  /// made from, or -1 for `from`. The cheapest tree for up to four wanted
  /// layouts; beyond that each is taken in turn from where it is cheapest.
  llvm::SmallVector<int> planTree(const Layout &from,
                                  llvm::ArrayRef<Layout> wanted,
                                  llvm::ArrayRef<int64_t> shape,
                                  int64_t elementBytes);

  /// All steps that lead from `from` to another layout towards `to`; what a
  /// test's oracle explores as well.
  llvm::SmallVector<ReshardStep> getSteps(const Layout &from, const Layout &to,
                                          llvm::ArrayRef<int64_t> shape,
                                          int64_t elementBytes) const;

private:
  using Key = std::tuple<Layout, Layout, std::vector<int64_t>, int64_t>;

  ReshardPlan search(const Layout &from, const Layout &to,
                     llvm::ArrayRef<int64_t> shape, int64_t elementBytes) const;

  MeshAxes mesh;
  std::map<Key, ReshardPlan> plans;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_RESHARDPLANNER_H
