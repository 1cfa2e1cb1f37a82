//===- ReshardPlanner.h - The cheapest way between layouts ------*- C++ -*-===//
//
// Shortest paths over the layouts of one tensor, and cheapest trees where one
// value is wanted in several. Among equally cheap ways one with the fewest
// steps is taken, then the first found, so that results are deterministic. A
// planner remembers what it has planned; use one per thread.
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

/// A layout that a value is delivered in.
struct Delivery {
  Layout layout;
  /// Index of the delivery that it is made from; -1: what the producer made.
  int source;
};

class ReshardPlanner {
public:
  /// By default a way uses only axes that its ends name: a reduction over one
  /// axis does not make a detour by way of another. With `usesAllAxes` it may,
  /// where that is cheaper. Collectives that `prices` does not allow are taken
  /// where there is no other way. `graphs` may be shared with others.
  explicit ReshardPlanner(const MeshAxes &mesh, bool usesAllAxes = false,
                          const PartPrices &prices = {},
                          std::shared_ptr<LayoutGraphs> graphs = nullptr);

  /// The cheapest path from `from` to `to` for a tensor of global `shape`, made
  /// in part `part`. Over more than four axes, those that stand next to each
  /// other in both layouts, or in neither, move together. Over more than four
  /// such bundles it is the cheapest that a search of limited work finds. `to`
  /// may be unreduced only over axes that `from` is.
  ReshardPlan plan(const Layout &from, const Layout &to,
                   llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                   Part part = Part::Forward);

  /// The cheapest tree that delivers a value made as `from` in all layouts of
  /// `wanted` (distinct, none equal to `from`; they are the first entries of
  /// the result, in their order) by way of any others. Trees of more than eight
  /// layouts, or over more than four bundles of axes, have no layouts in
  /// between that nobody wants.
  llvm::SmallVector<Delivery> planTree(const Layout &from,
                                       llvm::ArrayRef<Layout> wanted,
                                       llvm::ArrayRef<int64_t> shape,
                                       int64_t elementBytes,
                                       Part part = Part::Forward);

private:
  /// What belongs to tensors of one shape, over some of the axes.
  struct Tensor {
    DistanceTable table;
    MulticastTrees trees;
    Tensor(LayoutGraph &graph, const CollectiveCosts &prices,
           llvm::ArrayRef<int64_t> shape, int64_t elementBytes)
        : table(graph, prices, shape, elementBytes), trees(table) {}
  };

  /// The axes that a way between `layouts` may use, and how they move.
  LayoutScope getScope(llvm::ArrayRef<Layout> layouts) const;
  /// Of a tensor made in `part` in layout `from` that is to reach all of `to`.
  Tensor &getTensor(const Layout &from, llvm::ArrayRef<Layout> to,
                    llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                    Part part);
  Tensor &getTensor(LayoutGraph &graph, llvm::ArrayRef<int64_t> shape,
                    int64_t elementBytes, const CollectiveCosts &prices);

  MeshAxes mesh;
  bool usesAllAxes;
  PartPrices prices;
  /// By part, where all collectives are allowed.
  PartPrices unrestricted;
  std::shared_ptr<LayoutGraphs> graphs;
  std::map<std::tuple<LayoutGraph *, std::vector<int64_t>, int64_t,
                      const CollectiveCosts *>,
           Tensor>
      tensors;
};

} // namespace shardc

#endif // SHARDC_RESHARD_RESHARDPLANNER_H
