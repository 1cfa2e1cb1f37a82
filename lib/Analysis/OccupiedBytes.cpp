//===- OccupiedBytes.cpp - Bytes that are taken at some step --------------===//

#include "OccupiedBytes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
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

void OccupiedBytes::unite(llvm::ArrayRef<Range> lhs, llvm::ArrayRef<Range> rhs,
                          Union &result) {
  result.clear();
  result.reserve(lhs.size() + rhs.size());
  while (!lhs.empty() || !rhs.empty()) {
    bool isLeft = rhs.empty() || (!lhs.empty() && lhs.front() < rhs.front());
    llvm::ArrayRef<Range> &next = isLeft ? lhs : rhs;
    Range range = next.front();
    next = next.drop_front();
    if (result.empty() || result.back().second < range.first)
      result.push_back(range);
    else if (result.back().second < range.second)
      result.back().second = range.second;
  }
}

OccupiedBytes::Union OccupiedBytes::get(int64_t first, int64_t last) const {
  llvm::SmallVector<llvm::ArrayRef<Range>> parts;
  auto addPart = [&](const Union &ranges) {
    if (!ranges.empty())
      parts.push_back(ranges);
  };
  size_t firstLeaf = getLeaf(first), lastLeaf = getLeaf(last);
  forEachSubtree(firstLeaf, lastLeaf,
                 [&](size_t node) { addPart(nodes[node].ever); });
  forEachAncestor(firstLeaf, lastLeaf,
                  [&](size_t node) { addPart(nodes[node].always); });
  if (parts.empty())
    return {};
  // Pairs, then pairs of pairs, and so on. United parts are kept in `united`.
  std::vector<Union> united(parts.size());
  for (size_t distance = 1; distance < parts.size(); distance *= 2)
    for (size_t i = 0; i + distance < parts.size(); i += 2 * distance) {
      unite(parts[i], parts[i + distance], united[i + 1]);
      std::swap(united[i], united[i + 1]);
      parts[i] = united[i];
    }
  return parts.size() > 1 ? std::move(united.front()) : parts.front().vec();
}

} // namespace shardc
