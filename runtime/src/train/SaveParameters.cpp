//===- SaveParameters.cpp - Parameters to archives ------------------------===//
//
// Several processes write one file, each the bytes of the shards that its
// devices are the first to hold: rank 0 makes the file, all write and flush,
// and rank 0 adds headers with everyone's checksums and gives the file its
// name.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Trainer.h"

#include "base/ArrayBytes.h"
#include "base/Convert.h"
#include "checkpoint/Extents.h"
#include "checkpoint/Manifest.h"
#include "checkpoint/WriterPeers.h"
#include "data/Npz.h"
#include "exec/Shards.h"
#include "train/ParameterFile.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cstring>
#include <memory>
#include <optional>
#include <unistd.h>

using namespace shardc::rt;

absl::StatusOr<ArrayMap> shardc::rt::readParameters(const Executor &executor) {
  ArrayMap arrays;
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    if (tensor.role != Role::Parameter)
      continue;
    absl::StatusOr<HostArray> array = executor.getTensor(tensor.name);
    // NumPy has no bf16; f32 holds it exactly. Both kinds of files are alike.
    if (array.ok() && array->dtype == DType::BF16)
      array = convert(*array, DType::F32);
    if (!array.ok())
      return array.status();
    arrays.emplace(tensor.name, *std::move(array));
  }
  return arrays;
}

static absl::Status writeNpy(const std::string &path, const ArrayMap &arrays) {
  if (arrays.size() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a file .npy holds one array, and there are ",
                     arrays.size(), "; expected .npz or .safetensors"));
  absl::StatusOr<std::string> bytes = formatNpy(arrays.begin()->second.view());
  if (!bytes.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", bytes.status().message()));
  return replaceFile(path,
                     [&](WritableFile &file) { return file.write(0, *bytes); });
}

absl::Status shardc::rt::writeArrays(const std::string &path,
                                     const ArrayMap &arrays) {
  if (absl::Status status = checkBytes(arrays); !status.ok())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", status.message()));
  if (absl::EndsWith(path, ".npy"))
    return writeNpy(path, arrays);
  std::vector<TensorType> types;
  for (const auto &[name, array] : arrays)
    types.push_back({name, array.dtype, array.shape});
  absl::StatusOr<ParameterFile> layout =
      ParameterFile::create(path, std::move(types));
  if (!layout.ok())
    return layout.status();
  return replaceFile(path, [&](WritableFile &file) {
    absl::Status status;
    for (size_t i = 0; i < layout->tensors().size(); ++i) {
      const HostArray &array = arrays.at(layout->tensors()[i].name);
      if (status.ok())
        status =
            layout->write(file, i, 0,
                          {reinterpret_cast<const char *>(array.data.data()),
                           array.data.size()});
    }
    return status.ok() ? layout->finish(file, {layout->sums()}) : status;
  });
}

namespace {
/// One call of `saveParameters`.
class Saving {
public:
  Saving(const Executor &executor, const std::string &path,
         const std::function<void()> &onProgress)
      : executor(executor), path(path), progress(executor.store(), onProgress),
        peers(executor.store(),
              executor.store() ? executor.store()->options().deadline
                               : absl::Minutes(5),
              progress) {}

  absl::Status run();

private:
  absl::Status layOut();
  absl::Status make();
  absl::Status write();
  void keep(WritableFile opened);
  absl::StatusOr<std::string> writeShards();
  absl::Status writeShards(size_t number);
  absl::Status writeBytes(size_t number, uint64_t offset, const char *data,
                          uint64_t bytes);
  absl::Status finish(const std::vector<std::string> &all);

  const Executor &executor;
  const std::string &path;
  WriteProgress progress;
  WriterPeers peers;
  std::string place; ///< Where the file is as long as it is not whole.
  std::optional<WritableFile> file;
  std::optional<ParameterFile> layout;
  std::vector<ManifestTensor> parameters; ///< In the order of the file.
};
} // namespace

absl::Status Saving::layOut() {
  std::map<std::string, ManifestTensor> byName;
  for (ManifestTensor &tensor : tensorsOf(executor.plan().spec()))
    if (tensor.role == Role::Parameter) {
      std::string name = tensor.type.name;
      byName.emplace(std::move(name), std::move(tensor));
    }
  std::vector<TensorType> types;
  for (const auto &[name, tensor] : byName) {
    types.push_back(tensor.type);
    // As readParameters does.
    if (types.back().dtype == DType::BF16)
      types.back().dtype = DType::F32;
  }
  absl::StatusOr<ParameterFile> made =
      ParameterFile::create(path, std::move(types));
  if (!made.ok())
    return made.status();
  layout = *std::move(made);
  for (const TensorType &type : layout->tensors())
    parameters.push_back(std::move(byName.at(type.name)));
  return absl::OkStatus();
}

/// Writes bytes of a parameter as the executor has it.
absl::Status Saving::writeBytes(size_t number, uint64_t offset,
                                const char *data, uint64_t bytes) {
  if (parameters[number].type.dtype != DType::BF16)
    return layout->write(*file, number, offset, {data, bytes});
  constexpr uint64_t piece = 1 << 16;
  std::vector<float> wide;
  for (uint64_t at = 0; at < bytes; at += piece) {
    wide.resize(std::min(piece, bytes - at) / 2);
    for (size_t i = 0; i < wide.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, data + at + 2 * i, sizeof(bits));
      wide[i] = fromBF16(bits);
    }
    if (absl::Status status =
            layout->write(*file, number, 2 * (offset + at),
                          {reinterpret_cast<const char *>(wide.data()),
                           wide.size() * sizeof(float)});
        !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// Writes the shards of a parameter that this process has, which are packed as
/// they lie in the file: runs of shards that touch there are written at once.
absl::Status Saving::writeShards(size_t number) {
  const ManifestTensor &tensor = parameters[number];
  const DeviceRange devices =
      peers.devicesOf(peers.rank(), executor.plan().numDevices());
  Extents extents;
  for (const ManifestShard &shard : tensor.shards)
    if (devices.contains(shard.device))
      forEachRun({shard.start, shard.shape, shard.shape}, tensor.type.dtype,
                 tensor.type.shape, [&](int64_t from, int64_t, int64_t bytes) {
                   extents.add(from, bytes);
                 });
  // Not zeroed.
  std::unique_ptr<char[]> packed(new char[extents.pack(0)]);
  size_t hint = 0;
  absl::Status status = executor.readShards(
      tensor.type.name, [&](int64_t offset, const char *data, int64_t bytes) {
        if (bytes > 0)
          std::memcpy(packed.get() + extents.placeOf(offset, hint), data,
                      bytes);
      });
  if (status.ok() && peers.sharePages() && extents.areShort())
    status = file->mapFirst(layout->dataEnd());
  for (const Extent &extent : extents.all())
    if (status.ok())
      status = writeBytes(number, extent.begin, packed.get() + extent.place,
                          extent.bytes);
  return status;
}

/// Writes and flushes all that this process has; returns its checksums.
absl::StatusOr<std::string> Saving::writeShards() {
  if (!file) {
    absl::StatusOr<WritableFile> opened = WritableFile::open(place);
    if (!opened.ok())
      return absl::Status(opened.status().code(),
                          absl::StrCat(opened.status().message(),
                                       "; expected a folder that all processes "
                                       "share"));
    keep(*std::move(opened));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (absl::Status status = writeShards(i); !status.ok())
      return status;
    progress.note();
  }
  if (!peers.isFirst())
    if (absl::Status status = file->close(); !status.ok())
      return status;
  return absl::StrJoin(layout->sums(), " ");
}

/// Completes the file and gives it its name.
absl::Status Saving::finish(const std::vector<std::string> &all) {
  std::vector<std::vector<uint32_t>> sums;
  const size_t expected = layout->sums().size();
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::vector<uint32_t> &ofRank = sums.emplace_back();
    for (absl::string_view text :
         absl::StrSplit(all[rank], ' ', absl::SkipEmpty()))
      if (!absl::SimpleAtoi(text, &ofRank.emplace_back()))
        ofRank.clear();
    if (ofRank.size() != expected)
      return absl::InternalError(
          absl::StrCat("rank ", rank, " sent ", ofRank.size(),
                       " checksums, expected ", expected));
  }
  if (absl::Status status = layout->finish(*file, sums); !status.ok())
    return status;
  if (absl::Status status = file->close(); !status.ok())
    return status;
  return renameFile(place, path);
}

absl::Status Saving::make() {
  absl::StatusOr<WritableFile> made = WritableFile::make(place);
  if (made.ok())
    keep(*std::move(made));
  return made.status();
}

void Saving::keep(WritableFile opened) {
  file.emplace(std::move(opened));
  file->onProgress([this] { progress.note(); });
}

absl::Status Saving::run() {
  progress.begin("saving parameters");
  absl::Status status = write();
  progress.begin("");
  return status;
}

absl::Status Saving::write() {
  if (absl::Status status = peers.begin(absl::StrCat(path, ".tmp.", getpid()));
      !status.ok())
    return status;
  place = peers.agreedName();
  if (absl::Status status = peers.compareFileSystems(parentFolderOf(path));
      !status.ok())
    return status;
  absl::Status status = layOut();
  if (peers.isFirst() && status.ok()) {
    status = removeAll(place);
    if (status.ok())
      status = make();
  }
  status = peers.fromFirst("made the file of parameters", status);
  if (status.ok()) {
    absl::StatusOr<std::vector<std::string>> all =
        peers.toFirst("written", writeShards());
    status = all.status();
    if (peers.isFirst() && status.ok())
      status = finish(*all);
    if (peers.isFirst() && !status.ok())
      removeAll(place).IgnoreError();
    status = peers.fromFirst("given the file its name", status);
  }
  return underItsName(status, place, path);
}

absl::Status
shardc::rt::saveParameters(const Executor &executor, const std::string &path,
                           const std::function<void()> &onProgress) {
  return Saving(executor, path, onProgress).run();
}
