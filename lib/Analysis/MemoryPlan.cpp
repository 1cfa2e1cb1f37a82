//===- MemoryPlan.cpp - Offsets for buffers with lifetimes ----------------===//

#include "shardc/Analysis/MemoryPlan.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <map>

namespace shardc {

unsigned MemoryPlan::addBuffer(int64_t bytes, int64_t first, int64_t last) {
  buffers.push_back({alignBytes(bytes), first, last});
  return buffers.size() - 1;
}

void MemoryPlan::addRun(llvm::ArrayRef<unsigned> run) {
  for (unsigned buffer : run)
    buffers[buffer].isInRun = true;
  runs.emplace_back(run.begin(), run.end());
}

int64_t MemoryPlan::getBytes(const Run &run) const {
  int64_t bytes = 0;
  for (unsigned buffer : run)
    bytes += buffers[buffer].bytes;
  return bytes;
}

/// The start of the tightest gap for `run` between the buffers `placed`, by
/// offset, or else the first byte behind those that live at the same time.
int64_t MemoryPlan::findOffset(const Run &run,
                               llvm::ArrayRef<Buffer> placed) const {
  // Where the run cannot start: (first, second) for every neighbour and those
  // of the run's buffers, side by side, that overlap with it in time, both ends
  // being free.
  llvm::SmallVector<std::pair<int64_t, int64_t>> taken;
  int64_t runFirst = std::numeric_limits<int64_t>::max(), runLast = 0;
  for (unsigned number : run) {
    runFirst = std::min(runFirst, buffers[number].first);
    runLast = std::max(runLast, buffers[number].last);
  }
  for (const Buffer &neighbour : placed) {
    if (neighbour.last < runFirst || runLast < neighbour.first)
      continue;
    int64_t within = 0;
    bool overlapsBefore = false;
    for (unsigned number : run) {
      const Buffer &buffer = buffers[number];
      bool overlaps =
          neighbour.last >= buffer.first && buffer.last >= neighbour.first;
      if (overlaps && !overlapsBefore)
        taken.push_back({0, neighbour.offset + neighbour.bytes - within});
      within += buffer.bytes;
      if (overlaps)
        taken.back().first = neighbour.offset - within;
      overlapsBefore = overlaps;
    }
  }
  if (run.size() > 1)
    llvm::sort(taken);
  int64_t free = base, best = -1;
  int64_t bestGap = std::numeric_limits<int64_t>::max();
  for (auto [first, second] : taken) {
    if (first >= free && first - free < bestGap) {
      best = free;
      bestGap = first - free;
    }
    free = std::max(free, second);
  }
  return best >= 0 ? best : free;
}

void MemoryPlan::place() {
  llvm::SmallVector<Run> bySize = runs;
  for (auto [number, buffer] : llvm::enumerate(buffers))
    if (!buffer.isInRun)
      bySize.push_back({unsigned(number)});
  // Of equal sizes the buffer that was added first.
  llvm::sort(bySize, [](const Run &lhs, const Run &rhs) {
    return lhs.front() < rhs.front();
  });
  llvm::stable_sort(bySize, [&](const Run &lhs, const Run &rhs) {
    return getBytes(lhs) > getBytes(rhs);
  });
  llvm::SmallVector<Buffer> placed;
  for (const Run &run : bySize) {
    int64_t offset = findOffset(run, placed);
    for (unsigned number : run) {
      Buffer &buffer = buffers[number];
      buffer.offset = offset;
      offset += buffer.bytes;
      placed.insert(llvm::upper_bound(placed, buffer,
                                      [](const Buffer &lhs, const Buffer &rhs) {
                                        return lhs.offset < rhs.offset;
                                      }),
                    buffer);
    }
    end = std::max(end, offset);
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
