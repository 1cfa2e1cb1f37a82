//===- Shards.h - Between global arrays and shards --------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_SHARDS_H
#define SHARDC_RT_SRC_EXEC_SHARDS_H

#include "base/Mesh.h"
#include "shardc-rt/DType.h"
#include "shardc-rt/Executor.h"

#include "absl/functional/function_ref.h"

namespace shardc::rt {

/// Calls run(global offset, local offset, bytes) for every run of elements of a
/// shard's valid part that is contiguous in the global array and in the local
/// buffer, in row-major order. Offsets are in bytes.
void forEachRun(const Shard &shard, DType dtype,
                absl::Span<const int64_t> global,
                absl::FunctionRef<void(int64_t, int64_t, int64_t)> run);

/// The same for the bytes [begin, end) of the global array alone: runs are cut
/// there.
void forEachRunWithin(const Shard &shard, DType dtype,
                      absl::Span<const int64_t> global, int64_t begin,
                      int64_t end,
                      absl::FunctionRef<void(int64_t, int64_t, int64_t)> run);

/// A shard in memory of this process; `data` has its local shape.
struct ShardPlace {
  Shard shard;
  char *data;
};

/// The rows that shards of one tensor have, entries of the first dimension.
/// `forEachShard` calls the function that it is given with each of them. A
/// scalar has one row.
std::vector<RowRange>
rowsOfShards(absl::FunctionRef<void(absl::FunctionRef<void(const Shard &)>)>
                 forEachShard);

/// Copies a shard's valid part from a global array into a local buffer.
void scatterShard(const Shard &shard, DType dtype,
                  absl::Span<const int64_t> global, const void *array,
                  void *local);

/// Copies a shard's valid part from a local buffer into a global array.
void gatherShard(const Shard &shard, DType dtype,
                 absl::Span<const int64_t> global, const void *local,
                 void *array);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_SHARDS_H
