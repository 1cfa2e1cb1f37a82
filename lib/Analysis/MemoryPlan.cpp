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

namespace {

/// Where a run cannot start, both ends being free: occupied ranges, ascending
/// and disjoint, seen from some members of the run.
class Obstacles {
public:
  /// The members lie from byte `begin` of the run up to byte `end`.
  Obstacles(llvm::ArrayRef<OccupiedBytes::Range> ranges, int64_t begin,
            int64_t end)
      : ranges(ranges), begin(begin), end(end) {}

  bool isEmpty() const { return ranges.empty(); }
  /// The first range, both ends being free.
  int64_t getLow() const { return ranges.front().first - end; }
  int64_t getHigh() const { return ranges.front().second - begin; }

  /// Drops the ranges that end at `offset` or before it, by galloping search:
  /// mostly there are few.
  void dropBefore(int64_t offset) {
    auto isBefore = [&](const OccupiedBytes::Range &range) {
      return range.second - begin <= offset;
    };
    size_t known = 0, next = 0;
    while (next < ranges.size() && isBefore(ranges[next])) {
      known = next + 1;
      next = 2 * next + 1;
    }
    ranges = ranges.drop_front(known);
    size_t most = std::min(next - known, ranges.size());
    ranges = ranges.drop_front(
        llvm::partition_point(ranges.take_front(most), isBefore) -
        ranges.begin());
  }

private:
  llvm::ArrayRef<OccupiedBytes::Range> ranges;
  int64_t begin, end;
};

} // namespace

/// The first offset from `free` on at which the run can start. Drops the
/// obstacles before it.
static int64_t findFree(llvm::SmallVectorImpl<Obstacles> &obstacles,
                        int64_t free) {
  for (bool isCovered = true; isCovered;) {
    isCovered = false;
    for (Obstacles &each : obstacles) {
      each.dropBefore(free);
      if (each.isEmpty() || each.getLow() >= free)
        continue;
      free = each.getHigh();
      isCovered = true;
    }
    llvm::erase_if(obstacles,
                   [](const Obstacles &each) { return each.isEmpty(); });
  }
  return free;
}

/// The start of the tightest gap for `run` in `occupied`, the lowest of equal
/// ones, or else the first byte behind the buffers that live at the same time.
int64_t MemoryPlan::findOffset(const Run &run,
                               const OccupiedBytes &occupied) const {
  // Buffers side by side with equal lives count as one.
  llvm::SmallVector<Obstacles> obstacles;
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
    for (llvm::ArrayRef<OccupiedBytes::Range> ranges :
         occupied.get(first.first, first.last))
      obstacles.emplace_back(ranges, within, within + bytes);
    within += bytes;
  }
  int64_t free = findFree(obstacles, base), best = -1;
  int64_t bestGap = std::numeric_limits<int64_t>::max();
  // No gap is tighter than one that the run fills.
  while (!obstacles.empty() && bestGap > 0) {
    auto next = llvm::min_element(
        obstacles, [](const Obstacles &lhs, const Obstacles &rhs) {
          return lhs.getLow() < rhs.getLow();
        });
    if (int64_t gap = next->getLow() - free; gap < bestGap) {
      best = free;
      bestGap = gap;
    }
    free = findFree(obstacles, next->getHigh());
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
