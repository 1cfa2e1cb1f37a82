//===- Shards.cpp - Between global arrays and shards ----------------------===//

#include "exec/Shards.h"

#include <algorithm>
#include <cstring>

using namespace shardc::rt;

template <typename Copy>
static void visitRuns(const Shard &shard, DType dtype,
                      absl::Span<const int64_t> global, Copy copy) {
  int rank = global.size();
  for (int64_t size : shard.valid)
    if (size == 0)
      return;
  // The trailing dimensions that the shard holds whole join the run.
  int64_t width = byteSize(dtype), run = width;
  int last = rank;
  while (last > 0) {
    --last;
    run *= shard.valid[last];
    if (shard.valid[last] != global[last] || shard.local[last] != global[last])
      break;
  }
  std::vector<int64_t> index(rank);
  for (;;) {
    int64_t from = 0, to = 0;
    for (int dim = 0; dim < rank; ++dim) {
      from = from * global[dim] + shard.start[dim] + index[dim];
      to = to * shard.local[dim] + index[dim];
    }
    copy(from * width, to * width, run);
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
  visitRuns(shard, dtype, global, run);
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
  visitRuns(shard, dtype, global, [&](int64_t from, int64_t to, int64_t run) {
    std::memcpy(static_cast<char *>(local) + to,
                static_cast<const char *>(array) + from, run);
  });
}

void shardc::rt::gatherShard(const Shard &shard, DType dtype,
                             absl::Span<const int64_t> global,
                             const void *local, void *array) {
  visitRuns(shard, dtype, global, [&](int64_t from, int64_t to, int64_t run) {
    std::memcpy(static_cast<char *>(array) + from,
                static_cast<const char *>(local) + to, run);
  });
}
