//===- MulticastTrees.h - One value in several layouts ----------*- C++ -*-===//
//
// A value made in one layout and wanted in others is delivered by a tree of
// reshards: what one user wants may be made from what another one has, or from
// a layout that nobody wants but both come from. The cheapest tree is a minimum
// Steiner arborescence, found by dynamic programming over the subsets of the
// wanted layouts (Dreyfus, Wagner: The Steiner problem in graphs, Networks 1,
// 1971). Remembers what it has computed; use one per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_MULTICASTTREES_H
#define SHARDC_RESHARD_MULTICASTTREES_H

#include "shardc/Reshard/LayoutGraph.h"

namespace shardc {

/// The most layouts for which trees are exact. One value with more is served
/// without intermediate layouts, each from where it is cheapest in turn.
constexpr int maxDeliveredLayouts = 8;

class MulticastTrees {
public:
  /// Borrows `table`.
  explicit MulticastTrees(DistanceTable &table) : table(table) {}

  /// Layouts to make, in an order in which each is made from the start or an
  /// earlier one.
  struct Node {
    int layout;
    /// Index of the node that it is made from; -1: the start.
    int source;
  };

  /// The cost of the cheapest tree to all of `wanted` (ascending, distinct, at
  /// most maxDeliveredLayouts) from every layout.
  const std::vector<Distance> &getCosts(llvm::ArrayRef<int> wanted);

  /// The cheapest tree from layout `start` to all of `wanted` (ascending,
  /// distinct). Every wanted layout other than `start` is a node.
  std::vector<Node> getTree(int start, llvm::ArrayRef<int> wanted);

private:
  using Key = std::vector<int>;

  /// The part of `wanted` whose bits are set in `subset`.
  static Key select(llvm::ArrayRef<int> wanted, unsigned subset);
  /// The best way to tell `wanted` apart at layout `id`: a bit set over it.
  unsigned findSplit(llvm::ArrayRef<int> wanted, int id);
  void grow(int id, int node, llvm::ArrayRef<int> wanted,
            std::vector<Node> &nodes);

  DistanceTable &table;
  std::map<Key, std::vector<Distance>> costs;
};

} // namespace shardc

#endif // SHARDC_RESHARD_MULTICASTTREES_H
