//===- ReductionTree.h - The order of reductions over a group ---*- C++ -*-===//
//
// The operands of a group, in the order of its members, are the leaves of a
// binary tree. A node of n leaves has a left child with the largest power of
// two below n, and a right one with the rest: of 7 leaves it is ((0 1) (2 3))
// ((4 5) 6). Every element of a result is reduced in this order, which depends
// on the size of the group alone; who holds all leaves of a node may reduce
// them on his own, and the bits stay the same.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BASE_REDUCTIONTREE_H
#define SHARDC_RT_SRC_BASE_REDUCTIONTREE_H

#include <cstdint>
#include <vector>

namespace shardc::rt {

/// The leaves of the left child of a node of `leaves` > 1.
constexpr int64_t leavesOfLeft(int64_t leaves) {
  int64_t left = 1;
  while (2 * left < leaves)
    left *= 2;
  return left;
}

/// A node of a tree, by its leaves.
struct TreeNode {
  int64_t first, leaves;
};

/// The largest nodes below `node` whose leaves are all of one owner, in order.
/// `ownerOf` a leaf may be compared.
template <typename OwnerOf>
std::vector<TreeNode> nodesOfOneOwner(TreeNode node, OwnerOf ownerOf) {
  bool isOfOne = true;
  for (int64_t i = 1; i < node.leaves; ++i)
    isOfOne &= ownerOf(node.first + i) == ownerOf(node.first);
  if (isOfOne)
    return {node};
  int64_t left = leavesOfLeft(node.leaves);
  std::vector<TreeNode> nodes = nodesOfOneOwner({node.first, left}, ownerOf);
  for (TreeNode right :
       nodesOfOneOwner({node.first + left, node.leaves - left}, ownerOf))
    nodes.push_back(right);
  return nodes;
}

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_REDUCTIONTREE_H
