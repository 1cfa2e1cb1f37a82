//===- ReshardPlanner.h - The cheapest reshards of a tensor -----*- C++ -*-===//
//
// Shortest paths over the layouts of one tensor, and Steiner trees for values
// with several layouts. Ties go to the path with the fewest steps and then to
// the first found, so that results are deterministic. Caches its plans; use one
// per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_RESHARDPLANNER_H
#define SHARDC_RESHARD_RESHARDPLANNER_H

#include "shardc/Reshard/MulticastTrees.h"

namespace shardc {

/// A cheapest path.
struct ReshardPlan {
  llvm::SmallVector<ReshardStep, 2> steps;
  int64_t wireBytes = 0;
};

/// A layout to which a value is resharded.
struct Delivery {
  Layout layout;
  /// Index of the delivery that is its source; -1: the layout of the producer.
  int source;
};

class ReshardPlanner {
public:
  /// By default a path uses only the axes of its two ends: a reduction over one
  /// axis makes no detour over another. With `usesAllAxes` it may, where that
  /// is cheaper. A collective that `collectiveCosts` forbids is used only if
  /// there is no other path. `graphs` may be shared with others.
  explicit ReshardPlanner(const MeshAxes &mesh, bool usesAllAxes = false,
                          const CostsByPart &collectiveCosts = {},
                          std::shared_ptr<LayoutGraphs> graphs = nullptr);

  /// The cheapest path from `from` to `to` for a tensor of global `shape`, made
  /// in part `part`. Over more than four axes, axes that are adjacent in both
  /// layouts, or absent from both, form a bundle and move together. Over more
  /// than four bundles it is the cheapest path that a search of limited work
  /// finds. `to` may be unreduced only over axes over which `from` is.
  ReshardPlan plan(const Layout &from, const Layout &to,
                   llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                   Part part = Part::Forward);

  /// The cheapest tree from `from` to all layouts of `wanted` (distinct, none
  /// equal to `from`). They are the first entries of the result, in their
  /// order; layouts between them follow. Trees of more than eight layouts, or
  /// over more than four bundles of axes, have no layouts in between.
  llvm::SmallVector<Delivery> planTree(const Layout &from,
                                       llvm::ArrayRef<Layout> wanted,
                                       llvm::ArrayRef<int64_t> shape,
                                       int64_t elementBytes,
                                       Part part = Part::Forward);

private:
  /// The caches for tensors of one shape over some of the axes.
  struct Tensor {
    DistanceTable table;
    MulticastTrees trees;
    Tensor(LayoutGraph &graph, const CollectiveCosts &collectiveCosts,
           llvm::ArrayRef<int64_t> shape, int64_t elementBytes)
        : table(graph, collectiveCosts, shape, elementBytes), trees(table) {}
  };

  /// The axes that paths between `layouts` may use, and their bundles.
  LayoutScope getScope(llvm::ArrayRef<Layout> layouts) const;
  /// For a tensor made in `part` in layout `from` that is to reach all of `to`.
  Tensor &getTensor(const Layout &from, llvm::ArrayRef<Layout> to,
                    llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                    Part part);
  Tensor &getTensor(LayoutGraph &graph, llvm::ArrayRef<int64_t> shape,
                    int64_t elementBytes,
                    const CollectiveCosts &collectiveCosts);

  MeshAxes mesh;
  bool usesAllAxes;
  CostsByPart collectiveCosts;
  /// The costs without forbidden collectives.
  CostsByPart unrestricted;
  std::shared_ptr<LayoutGraphs> graphs;
  std::map<std::tuple<LayoutGraph *, std::vector<int64_t>, int64_t,
                      const CollectiveCosts *>,
           Tensor>
      tensors;
};

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARDPLANNER_H
