//===- OccupiedBytes.cpp - Bytes that are taken at some step --------------===//

#include "OccupiedBytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace shardc {

OccupiedBytes::OccupiedBytes(std::vector<int64_t> all) : steps(std::move(all)) {
  llvm::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  numLeaves = llvm::PowerOf2Ceil(steps.size());
  nodes.resize(2 * numLeaves);
}

size_t OccupiedBytes::getLeaf(int64_t step) const {
  return numLeaves + (llvm::lower_bound(steps, step) - steps.begin());
}

void OccupiedBytes::insert(Union &ranges, Range range) {
  auto begin = llvm::partition_point(
      ranges, [&](const Range &each) { return each.second < range.first; });
  auto end = std::partition_point(begin, ranges.end(), [&](const Range &each) {
    return each.first <= range.second;
  });
  if (begin == end) {
    ranges.insert(begin, range);
    return;
  }
  begin->first = std::min(begin->first, range.first);
  begin->second = std::max(std::prev(end)->second, range.second);
  ranges.erase(begin + 1, end);
}

/// Calls `callback` with the largest subtrees whose leaves are those from
/// `first` to `last`.
template <typename Callback>
static void forEachSubtree(size_t first, size_t last, Callback callback) {
  for (++last; first < last; first /= 2, last /= 2) {
    if (first % 2 == 1)
      callback(first++);
    if (last % 2 == 1)
      callback(--last);
  }
}

/// Calls `callback` once with every node at or above leaf `first` or `last`.
template <typename Callback>
static void forEachAncestor(size_t first, size_t last, Callback callback) {
  for (; first != last; first /= 2, last /= 2) {
    callback(first);
    callback(last);
  }
  for (; first > 0; first /= 2)
    callback(first);
}

void OccupiedBytes::add(int64_t first, int64_t last, Range range) {
  size_t firstLeaf = getLeaf(first), lastLeaf = getLeaf(last);
  forEachSubtree(firstLeaf, lastLeaf, [&](size_t node) {
    insert(nodes[node].always, range);
    insert(nodes[node].ever, range);
  });
  // The parent of such a subtree is above the first or the last leaf.
  forEachAncestor(firstLeaf, lastLeaf,
                  [&](size_t node) { insert(nodes[node].ever, range); });
}

llvm::SmallVector<llvm::ArrayRef<OccupiedBytes::Range>>
OccupiedBytes::get(int64_t first, int64_t last) const {
  llvm::SmallVector<llvm::ArrayRef<Range>> unions;
  auto add = [&](const Union &ranges) {
    if (!ranges.empty())
      unions.push_back(ranges);
  };
  size_t firstLeaf = getLeaf(first), lastLeaf = getLeaf(last);
  forEachSubtree(firstLeaf, lastLeaf,
                 [&](size_t node) { add(nodes[node].ever); });
  forEachAncestor(firstLeaf, lastLeaf,
                  [&](size_t node) { add(nodes[node].always); });
  return unions;
}

} // namespace shardc
