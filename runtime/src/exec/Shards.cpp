//===- Shards.cpp - Between global arrays and shards ----------------------===//

#include "exec/Shards.h"

#include "absl/container/inlined_vector.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace shardc::rt;

static constexpr int64_t everything = std::numeric_limits<int64_t>::max();

/// Calls copy(global offset, local offset, bytes) for the runs within bytes
/// [begin, end) of the global array.
template <typename Copy>
static void visitRuns(const Shard &shard, DType dtype,
                      absl::Span<const int64_t> global, int64_t begin,
                      int64_t end, Copy copy) {
  const int rank = global.size();
  for (int64_t size : shard.valid)
    if (size == 0 || begin >= end)
      return;
  // The trailing dimensions that the shard holds whole join the run.
  const int64_t width = byteSize(dtype);
  int64_t run = width;
  int last = rank;
  while (last > 0) {
    --last;
    run *= shard.valid[last];
    if (shard.valid[last] != global[last] || shard.local[last] != global[last])
      break;
  }
  absl::InlinedVector<int64_t, 8> index(rank);
  auto globalOffset = [&] {
    int64_t from = 0;
    for (int dim = 0; dim < rank; ++dim)
      from = from * global[dim] + shard.start[dim] + index[dim];
    return from * width;
  };
  // The last run that begins at `begin` or before, or else the first.
  for (int dim = 0; dim < last; ++dim)
    for (int64_t low = 0, high = shard.valid[dim]; low + 1 < high;) {
      index[dim] = low + (high - low) / 2;
      (globalOffset() <= begin ? low : high) = index[dim];
      index[dim] = low;
    }
  for (;;) {
    const int64_t from = globalOffset();
    if (from >= end)
      return;
    int64_t to = 0;
    for (int dim = 0; dim < rank; ++dim)
      to = to * shard.local[dim] + index[dim];
    const int64_t skipped = std::max<int64_t>(0, begin - from);
    if (skipped < run)
      copy(from + skipped, to * width + skipped,
           std::min(from + run, end) - from - skipped);
    int dim = last - 1;
    while (dim >= 0 && ++index[dim] == shard.valid[dim])
      index[dim--] = 0;
    if (dim < 0)
      return;
  }
}

void shardc::rt::forEachRun(
    const Shard &shard, DType dtype, absl::Span<const int64_t> global,
    absl::FunctionRef<void(int64_t, int64_t, int64_t)> run) {
  visitRuns(shard, dtype, global, 0, everything, run);
}

void shardc::rt::forEachRunWithin(
    const Shard &shard, DType dtype, absl::Span<const int64_t> global,
    int64_t begin, int64_t end,
    absl::FunctionRef<void(int64_t, int64_t, int64_t)> run) {
  visitRuns(shard, dtype, global, begin, end, run);
}

std::vector<RowRange> shardc::rt::rowsOfShards(
    absl::FunctionRef<void(absl::FunctionRef<void(const Shard &)>)>
        forEachShard) {
  std::vector<RowRange> rows;
  forEachShard([&](const Shard &shard) {
    int64_t first = shard.start.empty() ? 0 : shard.start[0];
    int64_t count = shard.valid.empty() ? 1 : shard.valid[0];
    if (count > 0)
      rows.push_back({first, first + count});
  });
  std::sort(rows.begin(), rows.end(),
            [](RowRange a, RowRange b) { return a.first < b.first; });
  std::vector<RowRange> joined;
  for (RowRange range : rows) {
    if (joined.empty() || joined.back().last < range.first)
      joined.push_back(range);
    else
      joined.back().last = std::max(joined.back().last, range.last);
  }
  return joined;
}

void shardc::rt::scatterShard(const Shard &shard, DType dtype,
                              absl::Span<const int64_t> global,
                              const void *array, void *local) {
  visitRuns(shard, dtype, global, 0, everything,
            [&](int64_t from, int64_t to, int64_t run) {
              std::memcpy(static_cast<char *>(local) + to,
                          static_cast<const char *>(array) + from, run);
            });
}

void shardc::rt::gatherShard(const Shard &shard, DType dtype,
                             absl::Span<const int64_t> global,
                             const void *local, void *array) {
  visitRuns(shard, dtype, global, 0, everything,
            [&](int64_t from, int64_t to, int64_t run) {
              std::memcpy(static_cast<char *>(array) + from,
                          static_cast<const char *>(local) + to, run);
            });
}
