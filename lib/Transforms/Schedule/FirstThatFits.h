//===- FirstThatFits.h - Segment tree of costs ------------------*- C++ -*-===//
//
// A set of numbers with costs, as a segment tree of minima: it finds the first
// number whose cost is within a limit in logarithmic time. A value class; not
// thread-safe.
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

/// A subset of the numbers 0 … `size` - 1, each with a cost.
class FirstThatFits {
public:
  explicit FirstThatFits(size_t size = 0)
      : numLeaves(llvm::PowerOf2Ceil(size)), least(2 * numLeaves, absent) {}

  /// Inserts `number`, or changes its cost. `cost` must be below the largest
  /// integer.
  void put(size_t number, int64_t cost) {
    size_t node = numLeaves + number;
    if (least[node] == cost)
      return;
    least[node] = cost;
    while (node /= 2)
      least[node] = std::min(least[2 * node], least[2 * node + 1]);
  }

  /// Removes `number` if the set has it.
  void remove(size_t number) { put(number, absent); }

  /// The first number from `begin` on that costs at most `most`; -1 if there is
  /// none.
  int find(size_t begin, int64_t most = absent - 1) const {
    if (begin >= numLeaves)
      return -1;
    // Climb from the leaf, to the right, to the first subtree with such a
    // number; then descend to its leftmost one.
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
  /// The least cost below each node. Node 1 is the root; the children of node n
  /// are 2n and 2n + 1.
  std::vector<int64_t> least;
};

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_SCHEDULE_FIRSTTHATFITS_H
