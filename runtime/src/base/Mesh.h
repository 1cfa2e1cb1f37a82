//===- Mesh.h - The device mesh and shardings over it -----------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_MESH_H
#define SHARDC_RT_SRC_BASE_MESH_H

#include "absl/types/span.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardc::rt {

/// Named axes. Devices are numbered row-major, the last axis fastest.
/// Immutable, thus safe to share between threads.
class Mesh {
public:
  struct Axis {
    std::string name;
    int64_t size;
  };

  Mesh() = default;
  /// Sizes are at least 1 and their product fits 31 bits.
  explicit Mesh(std::vector<Axis> axes);

  absl::Span<const Axis> axes() const { return meshAxes; }
  int64_t numDevices() const { return devices; }

  /// Position of `device` on `axis`.
  int64_t coordinate(int64_t device, int axis) const;

  /// Index of `device` over `axes`, major to minor: in [0, numShards(axes)).
  int64_t index(int64_t device, absl::Span<const int> axes) const;

  /// Product of the sizes of `axes`.
  int64_t numShards(absl::Span<const int> axes) const;

  /// The groups that the axes form: devices that agree on all other axes, in
  /// order of their index over `axes`. Groups are in order of first member.
  std::vector<std::vector<int64_t>> groups(absl::Span<const int> axes) const;

  /// As "data=4,model=2".
  std::string toString() const;

private:
  std::vector<Axis> meshAxes;
  std::vector<int64_t> strides;
  int64_t devices = 1;
};

/// Consecutive devices, [first, last).
struct DeviceRange {
  int64_t first = 0, last = 0;

  int64_t size() const { return last - first; }
  bool contains(int64_t device) const {
    return first <= device && device < last;
  }
  bool operator==(DeviceRange other) const {
    return first == other.first && last == other.last;
  }
  bool operator!=(DeviceRange other) const { return !(*this == other); }
};

/// The devices of process `process` of `processes`: consecutive ones in the
/// order of processes, whose numbers differ by one at most.
DeviceRange devicesOfProcess(int64_t devices, int process, int processes);

struct Sharding {
  /// The axes (indices into the mesh's) that shard each dimension, major to
  /// minor.
  std::vector<std::vector<int>> dims;
  /// Entries of a shard of each dimension; 0, or a list that ends before:
  /// ceil(size / number of shards).
  std::vector<int64_t> shardSizes = {};

  /// As `P("data", None)`-like text: [{"data"}, {}].
  std::string toString(const Mesh &mesh) const;
};

/// The part of a tensor that one device holds. `local` is the shape of its
/// buffer; the first `valid` entries of each dimension are those of the global
/// tensor from `start` on, the rest is padding.
struct Shard {
  std::vector<int64_t> start;
  std::vector<int64_t> valid;
  std::vector<int64_t> local;
};

/// The shard of a tensor of shape `global` on `device`.
Shard shardOf(const Mesh &mesh, const Sharding &sharding,
              absl::Span<const int64_t> global, int64_t device);

/// Shape of every device's buffer.
std::vector<int64_t> localShape(const Mesh &mesh, const Sharding &sharding,
                                absl::Span<const int64_t> global);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_MESH_H
