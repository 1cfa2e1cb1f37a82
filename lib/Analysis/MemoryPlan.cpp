//===- MemoryPlan.cpp - Offsets for buffers with lifetimes ----------------===//

#include "shardc/Analysis/MemoryPlan.h"

#include "OccupiedBytes.h"

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

/// The start of the tightest gap for `run` in `occupied`, the lowest of equal
/// ones, or else the first byte behind the buffers that live at the same time.
int64_t MemoryPlan::findOffset(const Run &run,
                               const OccupiedBytes &occupied) const {
  // Where the run cannot start, both ends being free. Buffers side by side with
  // equal lives count as one.
  llvm::SmallVector<OccupiedBytes::Range> taken;
  int64_t within = 0;
  for (size_t begin = 0, end = 0; begin < run.size(); begin = end) {
    const Buffer &first = buffers[run[begin]];
    int64_t bytes = 0;
    for (; end < run.size(); ++end) {
      const Buffer &next = buffers[run[end]];
      if (next.first != first.first || next.last != first.last)
        break;
      bytes += next.bytes;
    }
    for (auto [low, high] : occupied.get(first.first, first.last))
      taken.push_back({low - within - bytes, high - within});
    within += bytes;
  }
  llvm::sort(taken);
  int64_t free = base, best = -1;
  int64_t bestGap = std::numeric_limits<int64_t>::max();
  for (auto [low, high] : taken) {
    if (low >= free && low - free < bestGap) {
      best = free;
      bestGap = low - free;
    }
    free = std::max(free, high);
  }
  return best >= 0 ? best : free;
}

void MemoryPlan::place() {
  llvm::SmallVector<Run> bySize = runs;
  std::vector<int64_t> steps;
  for (auto [number, buffer] : llvm::enumerate(buffers)) {
    if (!buffer.isInRun)
      bySize.push_back({unsigned(number)});
    steps.insert(steps.end(), {buffer.first, buffer.last});
  }
  // At equal sizes, the buffer that was added first.
  llvm::sort(bySize, [](const Run &lhs, const Run &rhs) {
    return lhs.front() < rhs.front();
  });
  llvm::stable_sort(bySize, [&](const Run &lhs, const Run &rhs) {
    return getBytes(lhs) > getBytes(rhs);
  });
  OccupiedBytes occupied(std::move(steps));
  for (const Run &run : bySize) {
    int64_t offset = findOffset(run, occupied);
    for (unsigned number : run) {
      Buffer &buffer = buffers[number];
      buffer.offset = offset;
      offset += buffer.bytes;
      if (buffer.bytes > 0)
        occupied.add(buffer.first, buffer.last, {buffer.offset, offset});
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
