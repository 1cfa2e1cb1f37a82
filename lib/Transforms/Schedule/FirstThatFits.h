//===- FirstThatFits.h - The first number of small cost ---------*- C++ -*-===//
//
// A set of numbers with costs, in which the first whose cost is small enough is
// found without looking at the others: a binary tree with the least cost below
// each node. A value class; not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_SCHEDULE_FIRSTTHATFITS_H
#define SHARDC_LIB_TRANSFORMS_SCHEDULE_FIRSTTHATFITS_H

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardc {

/// Of the numbers 0 … `size` - 1 those that have been put in.
class FirstThatFits {
public:
  explicit FirstThatFits(size_t size = 0)
      : numLeaves(llvm::PowerOf2Ceil(size)), least(2 * numLeaves, absent) {}

  /// Puts `number` in, at a cost below the largest integer, or changes its
  /// cost.
  void put(size_t number, int64_t cost) {
    size_t node = numLeaves + number;
    if (least[node] == cost)
      return;
    least[node] = cost;
    while (node /= 2)
      least[node] = std::min(least[2 * node], least[2 * node + 1]);
  }

  /// Takes `number` out, if it is in.
  void remove(size_t number) { put(number, absent); }

  /// The first number from `begin` on that costs at most `most`; -1: none.
  int find(size_t begin, int64_t most = absent - 1) const {
    if (begin >= numLeaves)
      return -1;
    // Up from the leaf, to the right, until a subtree has one; down to it.
    size_t node = numLeaves + begin;
    while (least[node] > most) {
      while (node % 2 == 1)
        node /= 2;
      if (node == 0)
        return -1;
      ++node;
    }
    while (node < numLeaves) {
      node *= 2;
      if (least[node] > most)
        ++node;
    }
    return node - numLeaves;
  }

private:
  static constexpr int64_t absent = std::numeric_limits<int64_t>::max();

  size_t numLeaves;
  /// Node 1 is the root, 2n and 2n + 1 are below node n.
  std::vector<int64_t> least;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_SCHEDULE_FIRSTTHATFITS_H
