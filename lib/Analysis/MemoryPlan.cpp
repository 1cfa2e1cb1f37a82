//===- MemoryPlan.cpp - Offsets for buffers with lifetimes ----------------===//

#include "shardc/Analysis/MemoryPlan.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace shardc {

unsigned MemoryPlan::addBuffer(int64_t bytes, int64_t first, int64_t last) {
  buffers.push_back({alignBytes(bytes), first, last});
  return buffers.size() - 1;
}

void MemoryPlan::place() {
  llvm::SmallVector<unsigned> bySize(buffers.size());
  std::iota(bySize.begin(), bySize.end(), 0u);
  llvm::stable_sort(bySize, [&](unsigned lhs, unsigned rhs) {
    return buffers[lhs].bytes > buffers[rhs].bytes;
  });
  // Placed ones by offset.
  llvm::SmallVector<unsigned> placed;
  for (unsigned number : bySize) {
    Buffer &buffer = buffers[number];
    int64_t free = base, best = -1;
    int64_t bestGap = std::numeric_limits<int64_t>::max();
    for (unsigned other : placed) {
      const Buffer &neighbour = buffers[other];
      if (neighbour.last < buffer.first || buffer.last < neighbour.first)
        continue;
      int64_t gap = neighbour.offset - free;
      if (gap >= buffer.bytes && gap < bestGap) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free, neighbour.offset + neighbour.bytes);
    }
    buffer.offset = best >= 0 ? best : free;
    end = std::max(end, buffer.offset + buffer.bytes);
    auto position =
        llvm::upper_bound(placed, number, [&](unsigned lhs, unsigned rhs) {
          return buffers[lhs].offset < buffers[rhs].offset;
        });
    placed.insert(position, number);
  }
}

int64_t MemoryPlan::getLowerBound() const {
  std::map<int64_t, int64_t> changes;
  for (const Buffer &buffer : buffers) {
    changes[buffer.first] += buffer.bytes;
    changes[buffer.last + 1] -= buffer.bytes;
  }
  int64_t alive = 0, most = 0;
  for (auto [step, change] : changes)
    most = std::max(most, alive += change);
  return most;
}

} // namespace shardc
