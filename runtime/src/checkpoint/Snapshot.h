//===- Snapshot.h - A training between two steps ----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_SNAPSHOT_H
#define SHARDC_RT_SRC_CHECKPOINT_SNAPSHOT_H

#include "base/Memory.h"
#include "base/Mesh.h"
#include "checkpoint/Extents.h"
#include "checkpoint/Files.h"
#include "checkpoint/Manifest.h"
#include "shardc-rt/Executor.h"

#include "absl/functional/function_ref.h"

#include <optional>
#include <string>
#include <vector>

namespace shardc::rt {

/// A copy of a training as the files of a checkpoint hold it. Each process has
/// the shards that its own devices are the first to hold, packed as they lie in
/// the files; one process alone has whole files.
///
/// Thread-safety: one call at a time.
class Snapshot {
public:
  /// Lays out the files of a plan's checkpoint, of at most `maxFileBytes` where
  /// that is possible, and allocates memory for what `devices` hold first,
  /// unless that was done for the same shards. ResourceExhausted: there is not
  /// enough. InvalidArgument: a name that safetensors cannot hold.
  [[nodiscard]] absl::Status prepare(const Plan &plan, DeviceRange devices,
                                     uint64_t maxFileBytes);

  /// Copies parameters and states; errors are those of reading them.
  [[nodiscard]] absl::Status copy(const Executor &executor);

  /// Computes the checksums of the shards that were copied, and tells of each.
  /// OutOfRange: one has a value that is not finite.
  [[nodiscard]] absl::Status check(absl::FunctionRef<void()> onProgress);

  /// Whether this process has short parts of file `number`, as of columns.
  bool hasShortParts(size_t number) const { return extents[number].areShort(); }

  /// Writes what was copied of file `number` of the manifest.
  [[nodiscard]] absl::Status write(size_t number, WritableFile &file) const;

  /// Length and header of file `number`.
  const std::string &header(size_t number) const { return headers[number]; }
  /// Of parameters and states, in all processes.
  uint64_t bytes() const;

  /// Calls `visit` for each shard that is first held by one of `devices`, in an
  /// order that the plan determines.
  void forEachShard(
      DeviceRange devices,
      absl::FunctionRef<void(const ManifestTensor &, ManifestShard &)> visit);

  Manifest manifest;

private:
  absl::Status assignFiles(Role role, uint64_t maxFileBytes);
  void forEachRun(const ManifestTensor &tensor, const ManifestShard &shard,
                  absl::FunctionRef<void(char *, int64_t)> visit) const;

  DeviceRange devices;
  std::vector<std::string> headers;
  std::vector<Extents> extents; ///< By file.
  /// Absent: not allocated.
  std::optional<Memory> memory;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_SNAPSHOT_H
