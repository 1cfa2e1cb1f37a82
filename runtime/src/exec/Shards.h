//===- Shards.h - Between global arrays and shards --------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_EXEC_SHARDS_H
#define SHARDC_RT_SRC_EXEC_SHARDS_H

#include "base/Mesh.h"
#include "shardc-rt/DType.h"

namespace shardc::rt {

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
