//===- Snapshot.cpp - A training between two steps ------------------------===//

#include "checkpoint/Snapshot.h"

#include "base/Convert.h"
#include "base/CopyToMemory.h"
#include "base/Crc32.h"
#include "exec/Shards.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>

using namespace shardc::rt;

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

/// The greatest power of two that divides the bytes of a tensor, up to those of
/// a cache line: at least the width of its elements.
static uint64_t alignmentOf(const TensorType &type) {
  constexpr uint64_t line = 64;
  const uint64_t bytes = type.bytes() | line;
  return bytes & -bytes;
}

/// Assigns the tensors of a role to files of at most `maxBytes` where that is
/// possible.
static std::vector<std::vector<size_t>>
divide(const std::vector<ManifestTensor> &tensors, Role role,
       uint64_t maxBytes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].role == role)
      order.push_back(i);
  // So every tensor begins at a multiple of its alignment.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return alignmentOf(tensors[a].type) > alignmentOf(tensors[b].type);
  });
  std::vector<std::vector<size_t>> files;
  uint64_t bytes = 0;
  for (size_t number : order) {
    uint64_t added = tensors[number].type.bytes();
    if (files.empty() || (bytes > 0 && bytes + added > maxBytes)) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().push_back(number);
    bytes += added;
  }
  return files;
}

/// "model" has the parameters, "optimizer" the states.
absl::Status Snapshot::assignFiles(Role role, uint64_t maxFileBytes) {
  std::vector<std::vector<size_t>> files =
      divide(manifest.tensors, role, maxFileBytes);
  for (size_t i = 0; i < files.size(); ++i) {
    std::vector<TensorType> types;
    for (size_t tensor : files[i])
      types.push_back(manifest.tensors[tensor].type);
    // Hugging Face's libraries want to be told of a framework.
    absl::StatusOr<std::string> header = formatSafetensorsHeader(
        types, {{"format", "pt"}, {"checkpoint", manifest.id}});
    if (!header.ok())
      return header.status();
    ManifestFile &file = manifest.files.emplace_back();
    file.name = absl::StrFormat("%s-%05d-of-%05d.safetensors",
                                role == Role::Parameter ? "model" : "optimizer",
                                i + 1, files.size());
    file.headerBytes = file.bytes = header->size();
    file.headerChecksum = checksumOf(*header);
    for (size_t tensor : files[i]) {
      manifest.tensors[tensor].file = file.name;
      manifest.tensors[tensor].begin = file.bytes;
      file.bytes += manifest.tensors[tensor].type.bytes();
    }
    headers.push_back(*std::move(header));
  }
  return absl::OkStatus();
}

/// Whether two plans have the same tensors and shards, on the same devices.
static bool areAlike(const std::vector<ManifestTensor> &a,
                     const std::vector<ManifestTensor> &b) {
  return absl::c_equal(
      a, b, [](const ManifestTensor &x, const ManifestTensor &y) {
        return x.type.name == y.type.name && x.type.dtype == y.type.dtype &&
               x.type.shape == y.type.shape && x.role == y.role &&
               absl::c_equal(
                   x.shards, y.shards,
                   [](const ManifestShard &s, const ManifestShard &t) {
                     return s.device == t.device && s.start == t.start &&
                            s.shape == t.shape;
                   });
      });
}

absl::Status Snapshot::prepare(const Plan &plan, DeviceRange newDevices,
                               uint64_t maxFileBytes) {
  std::vector<ManifestTensor> tensors = tensorsOf(plan.spec());
  bool isKnown = memory && areAlike(tensors, manifest.tensors) &&
                 newDevices.first == devices.first &&
                 newDevices.last == devices.last;
  manifest.tensors = std::move(tensors);
  manifest.files.clear();
  headers.clear();
  for (Role role : {Role::Parameter, Role::State})
    if (absl::Status status = assignFiles(role, maxFileBytes); !status.ok())
      return status;
  if (isKnown)
    return absl::OkStatus();
  devices = newDevices;
  extents.assign(manifest.files.size(), {});
  forEachShard(devices,
               [&](const ManifestTensor &tensor, const ManifestShard &shard) {
                 Extents &file = extents[manifest.numberOf(tensor.file)];
                 rt::forEachRun({shard.start, shard.shape, shard.shape},
                                tensor.type.dtype, tensor.type.shape,
                                [&](int64_t from, int64_t, int64_t bytes) {
                                  file.add(tensor.begin + from, bytes);
                                });
               });
  uint64_t size = 0;
  for (Extents &file : extents)
    size = file.pack(size);
  memory.reset();
  Memory allocated;
  if (!allocated.allocate(size))
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: cannot allocate ", size,
                     " bytes for the copy of a checkpoint"));
  // No copy waits for pages.
  allocated.touch(size);
  memory.emplace(std::move(allocated));
  return absl::OkStatus();
}

uint64_t Snapshot::bytes() const {
  uint64_t bytes = 0;
  for (const ManifestFile &file : manifest.files)
    bytes += file.bytes - file.headerBytes;
  return bytes;
}

void Snapshot::forEachShard(
    DeviceRange devices,
    absl::FunctionRef<void(const ManifestTensor &, ManifestShard &)> visit) {
  for (ManifestTensor &tensor : manifest.tensors)
    for (ManifestShard &shard : tensor.shards)
      if (devices.contains(shard.device))
        visit(tensor, shard);
}

/// Calls `visit` for the bytes of a shard, in row-major order.
void Snapshot::forEachRun(
    const ManifestTensor &tensor, const ManifestShard &shard,
    absl::FunctionRef<void(char *, int64_t)> visit) const {
  const Extents &file = extents[manifest.numberOf(tensor.file)];
  size_t hint = 0;
  rt::forEachRun(
      {shard.start, shard.shape, shard.shape}, tensor.type.dtype,
      tensor.type.shape, [&](int64_t from, int64_t, int64_t bytes) {
        visit(memory->get() + file.placeOf(tensor.begin + from, hint), bytes);
      });
}

//===----------------------------------------------------------------------===//
// Content
//===----------------------------------------------------------------------===//

absl::Status Snapshot::copy(const Executor &executor) {
  for (const ManifestTensor &tensor : manifest.tensors) {
    const Extents &file = extents[manifest.numberOf(tensor.file)];
    size_t hint = 0;
    absl::Status status = executor.readShards(
        tensor.type.name, [&](int64_t offset, const char *data, int64_t bytes) {
          if (bytes > 0)
            copyToMemory(memory->get() +
                             file.placeOf(tensor.begin + offset, hint),
                         data, bytes);
        });
    if (!status.ok())
      return status;
  }
  endCopiesToMemory();
  return absl::OkStatus();
}

absl::Status Snapshot::check(absl::FunctionRef<void()> onProgress) {
  // Of a run, as much as the caches hold.
  constexpr int64_t piece = 1 << 16;
  absl::Status result;
  forEachShard(
      devices, [&](const ManifestTensor &tensor, ManifestShard &shard) {
        uint32_t sum = 0;
        bool isFinite = true;
        forEachRun(tensor, shard, [&](const char *data, int64_t bytes) {
          for (int64_t at = 0; at < bytes; at += piece) {
            int64_t count = std::min(piece, bytes - at);
            isFinite &= areFinite(tensor.type.dtype, data + at, count);
            sum = extendCrc32(sum, {data + at, size_t(count)});
          }
        });
        shard.checksum = sum;
        if (!isFinite && result.ok())
          result = absl::OutOfRangeError(
              absl::StrCat(toString(tensor.role), " \"", tensor.type.name,
                           "\" has a value that is not finite"));
        onProgress();
      });
  return result;
}

absl::Status Snapshot::write(size_t number, WritableFile &file) const {
  for (const Extent &extent : extents[number].all())
    if (absl::Status status = file.write(
            extent.begin, {memory->get() + extent.place, extent.bytes});
        !status.ok())
      return status;
  return absl::OkStatus();
}
