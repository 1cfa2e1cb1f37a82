//===- MulticastTrees.h - One value in several layouts ----------*- C++ -*-===//
//
// The cheapest reshards of a value to all layouts in which it is used form a
// minimum Steiner arborescence of the layout graph: the layout of one user may
// be made from that of another, or both from a layout that nobody uses. Found
// by dynamic programming over the subsets of the wanted layouts (Dreyfus,
// Wagner: The Steiner problem in graphs, Networks 1, 1971). Caches its results;
// use one per thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RESHARD_MULTICASTTREES_H
#define SHARDC_RESHARD_MULTICASTTREES_H

#include "shardc/Reshard/LayoutGraph.h"

namespace shardc {

/// The most wanted layouts for which trees are exact. Beyond, each layout in
/// turn is made from the start or an earlier one, whichever is cheapest.
constexpr int maxDeliveredLayouts = 8;

class MulticastTrees {
public:
  /// Borrows `table`.
  explicit MulticastTrees(DistanceTable &table) : table(table) {}

  /// A layout of the tree. Its source is the start or an earlier node.
  struct Node {
    int layout;
    /// Index of the source node; -1: the start.
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
  /// The bit set over `wanted` of one of the two subtrees into which the
  /// cheapest tree forks at layout `id`.
  unsigned findSplit(llvm::ArrayRef<int> wanted, int id);
  void grow(int id, int node, llvm::ArrayRef<int> wanted,
            std::vector<Node> &nodes);

  DistanceTable &table;
  std::map<Key, std::vector<Distance>> costs;
};

} // namespace shardc

#endif // SHARDC_RESHARD_MULTICASTTREES_H
