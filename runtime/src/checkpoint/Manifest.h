//===- Manifest.h - What a checkpoint consists of ---------------*- C++ -*-===//
//
// The file manifest.json of a checkpoint, the last one that is written: without
// it there is no checkpoint. docs/Checkpoints.md describes it. Values; nothing
// is shared between threads.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_MANIFEST_H
#define SHARDC_RT_SRC_CHECKPOINT_MANIFEST_H

#include "base/Mesh.h"
#include "checkpoint/Safetensors.h"
#include "plan/PlanSpec.h"
#include "shardc-rt/Trainer.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// The part of a tensor that a device wrote, and the checksum of its bytes in
/// row-major order.
struct ManifestShard {
  int64_t device = 0; ///< The first one that held it.
  std::vector<int64_t> start, shape;
  uint32_t checksum = 0;

  /// "device 2, [0:5, 4:8]".
  std::string describe() const;
};

/// A parameter or an optimizer state.
struct ManifestTensor {
  TensorType type;
  Role role = Role::Parameter;
  std::string parameter; ///< Of a state: the one it belongs to, or empty.
  std::string file;
  uint64_t begin = 0; ///< Bytes into the file.
  std::vector<ManifestShard> shards;
};

/// A safetensors file; the checksums of its data are those of shards.
struct ManifestFile {
  std::string name;
  uint64_t bytes = 0;
  uint64_t headerBytes = 0;
  uint32_t headerChecksum = 0;
};

/// A file with a checksum as a whole.
struct ManifestIndex {
  std::string name;
  uint64_t bytes = 0;
  uint32_t checksum = 0;
};

struct Manifest {
  /// A number of its own, which every safetensors file has, too.
  std::string id;
  int64_t sequence = 0;  ///< Greater than those of earlier checkpoints.
  int64_t writtenAt = 0; ///< Seconds since 1970.
  std::string model;
  std::string mesh;
  TrainProgress progress;
  std::vector<ManifestFile> files;
  std::vector<ManifestIndex> indexes;
  std::vector<ManifestTensor> tensors;

  const ManifestFile *findFile(absl::string_view name) const;
  /// The number of a file that is there.
  size_t numberOf(absl::string_view file) const {
    return findFile(file) - files.data();
  }
  const ManifestTensor *findTensor(absl::string_view name) const;
};

/// The name of the file.
inline constexpr char manifestName[] = "manifest.json";

/// The parameters and states of a plan, each with the parts that devices hold
/// first, whose checksums are 0. No files are assigned.
std::vector<ManifestTensor> tensorsOf(const PlanSpec &plan);

/// A hash of what identifies a model: names, roles, types and global shapes of
/// its parameters and states. FNV-1a, 16 hexadecimal digits. Independent of the
/// mesh and of the order of tensors.
std::string fingerprintOf(const std::vector<ManifestTensor> &tensors);

/// The manifest as the text of its file.
std::string formatManifest(const Manifest &manifest);

/// Parses and checks the text of a manifest. InvalidArgument: damaged, or of
/// another version; ranges that leave their file, or a shard its tensor.
[[nodiscard]] absl::StatusOr<Manifest> parseManifest(absl::string_view text);

/// CRC-32 as of zlib.
uint32_t checksumOf(absl::string_view bytes);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_MANIFEST_H
