//===- Mesh.cpp - The device mesh and shardings over it -------------------===//

#include "base/Mesh.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

using namespace shardc::rt;

Mesh::Mesh(std::vector<Axis> axes)
    : meshAxes(std::move(axes)), strides(meshAxes.size()) {
  for (size_t axis = meshAxes.size(); axis-- > 0;) {
    strides[axis] = devices;
    devices *= meshAxes[axis].size;
  }
}

int64_t Mesh::coordinate(int64_t device, int axis) const {
  return device / strides[axis] % meshAxes[axis].size;
}

int64_t Mesh::index(int64_t device, absl::Span<const int> axes) const {
  int64_t result = 0;
  for (int axis : axes)
    result = result * meshAxes[axis].size + coordinate(device, axis);
  return result;
}

int64_t Mesh::numShards(absl::Span<const int> axes) const {
  int64_t shards = 1;
  for (int axis : axes)
    shards *= meshAxes[axis].size;
  return shards;
}

std::vector<std::vector<int64_t>>
Mesh::groups(absl::Span<const int> axes) const {
  int64_t size = numShards(axes);
  std::vector<std::vector<int64_t>> result;
  std::vector<int64_t> groupOfRoot(devices, -1);
  for (int64_t device = 0; device < devices; ++device) {
    // The member with coordinate 0 on every axis represents the group.
    int64_t root = device;
    for (int axis : axes)
      root -= coordinate(device, axis) * strides[axis];
    if (groupOfRoot[root] < 0) {
      groupOfRoot[root] = result.size();
      result.emplace_back(size);
    }
    result[groupOfRoot[root]][index(device, axes)] = device;
  }
  return result;
}

DeviceRange shardc::rt::devicesOfProcess(int64_t devices, int process,
                                         int processes) {
  return {devices * process / processes, devices * (process + 1) / processes};
}

std::string Mesh::toString() const {
  return absl::StrJoin(meshAxes, ",", [](std::string *out, const Axis &axis) {
    absl::StrAppend(out, axis.name, "=", axis.size);
  });
}

std::string Sharding::toString(const Mesh &mesh) const {
  return absl::StrCat(
      "[",
      absl::StrJoin(dims, ", ",
                    [&](std::string *out, const std::vector<int> &axes) {
                      absl::StrAppend(
                          out, "{",
                          absl::StrJoin(axes, ", ",
                                        [&](std::string *inner, int axis) {
                                          absl::StrAppend(
                                              inner, "\"",
                                              mesh.axes()[axis].name, "\"");
                                        }),
                          "}");
                    }),
      "]");
}

Shard shardc::rt::shardOf(const Mesh &mesh, const Sharding &sharding,
                          absl::Span<const int64_t> global, int64_t device) {
  Shard shard;
  for (size_t dim = 0; dim < global.size(); ++dim) {
    const std::vector<int> &axes = sharding.dims[dim];
    int64_t shards = mesh.numShards(axes);
    int64_t size = (global[dim] + shards - 1) / shards;
    if (dim < sharding.shardSizes.size() && sharding.shardSizes[dim] > 0)
      size = sharding.shardSizes[dim];
    int64_t start = std::min(mesh.index(device, axes) * size, global[dim]);
    shard.start.push_back(start);
    shard.valid.push_back(std::min(size, global[dim] - start));
    shard.local.push_back(size);
  }
  return shard;
}

std::vector<int64_t> shardc::rt::localShape(const Mesh &mesh,
                                            const Sharding &sharding,
                                            absl::Span<const int64_t> global) {
  return shardOf(mesh, sharding, global, /*device=*/0).local;
}
