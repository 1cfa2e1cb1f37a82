//===- CopyShards.h - A tensor of a checkpoint in one pass ------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_COPYSHARDS_H
#define SHARDC_RT_SRC_CHECKPOINT_COPYSHARDS_H

#include "base/ReadableFile.h"
#include "checkpoint/Manifest.h"
#include "exec/Shards.h"
#include "exec/WorkerPool.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shardc::rt {

/// Threads to read so many bytes with.
std::unique_ptr<WorkerPool> makeReaders(uint64_t bytes);

/// Where the bytes of a dense tensor begin.
struct StoredTensor {
  const ReadableFile &file;
  uint64_t begin;
};

/// Copies a tensor from its file to `places`, and returns the checksums of the
/// shards `checked`: every byte is read once, in the order of the file, and
/// those that neither needs are not, but for small holes. `onProgress` is
/// called by this thread, at least once, if there is one. DataLoss: the file
/// ends before, or cannot be read; it names the file, and `places` have any
/// bytes.
[[nodiscard]] absl::StatusOr<std::vector<uint32_t>>
copyShards(const TensorType &type, StoredTensor tensor,
           absl::Span<const ManifestShard *const> checked,
           absl::Span<const ShardPlace> places, WorkerPool &readers,
           const std::function<void()> &onProgress);

/// Whether `places`, which do not overlap, hold all elements of a shard.
bool holdAll(absl::Span<const ShardPlace> places, const ManifestShard &shard);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_COPYSHARDS_H
