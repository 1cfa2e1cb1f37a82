//===- LoadParameters.cpp - Parameters from archives ----------------------===//
//
// Each device gets its own part of an archive. Files .safetensors and arrays of
// .npz that are not compressed are read in ranges, so that a process reads what
// its devices hold; its share of the checksums comes on top.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Trainer.h"

#include "base/Convert.h"
#include "base/Crc32.h"
#include "checkpoint/Safetensors.h"
#include "data/StoredElements.h"
#include "shardc-rt/Store.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

using namespace shardc::rt;

namespace {
/// An array of an archive.
struct ArchivedArray {
  DType dtype;
  std::vector<int64_t> shape;
  /// Reads elements [first, first + count) into `out`.
  std::function<absl::Status(int64_t first, int64_t count, HostArray &out)>
      read;
};

using Archive = std::map<std::string, ArchivedArray>;
} // namespace

using OnProgress = std::function<void()>;

static void note(const OnProgress &onProgress) {
  if (onProgress)
    onProgress();
}

/// The CRC-32 of bytes [from, to) of a member.
static absl::StatusOr<uint32_t> checksumOf(const ReadableFile &file,
                                           const StoredMember &member,
                                           uint64_t from, uint64_t to,
                                           const OnProgress &onProgress) {
  constexpr uint64_t piece = 1 << 20;
  std::string bytes;
  uint32_t sum = 0;
  for (uint64_t at = from; at < to; at += bytes.size()) {
    bytes.resize(std::min(piece, to - at));
    if (absl::Status status =
            file.read(member.begin + at, &bytes[0], bytes.size());
        !status.ok())
      return status;
    sum = extendCrc32(sum, bytes);
    note(onProgress);
  }
  return sum;
}

/// Compares the checksums of all members; each of the processes that `store`
/// connects reads a part of each. The same result in all of them.
static absl::Status verify(const StoredArrays &archive, Store *store,
                           const OnProgress &onProgress) {
  const uint64_t size = store ? store->ranks().size : 1;
  const uint64_t rank = store ? store->ranks().rank : 0;
  auto begin = [&](const StoredMember &member, uint64_t rank) {
    return member.bytes / size * rank + std::min(rank, member.bytes % size);
  };
  std::vector<std::string> mine;
  for (const auto &[name, member] : archive.members) {
    absl::StatusOr<uint32_t> sum =
        checksumOf(*archive.file, member, begin(member, rank),
                   begin(member, rank + 1), onProgress);
    if (!sum.ok())
      return sum.status();
    mine.push_back(absl::StrCat(*sum));
  }
  std::vector<std::string> all = {absl::StrJoin(mine, " ")};
  if (store) {
    absl::StatusOr<std::vector<std::string>> gathered =
        store->gatherAll(absl::StrCat("reading ", archive.file->path()), all[0],
                         store->options().deadline);
    if (!gathered.ok())
      return gathered.status();
    all = *std::move(gathered);
  }
  std::vector<std::vector<std::string>> sums;
  for (const std::string &text : all)
    sums.push_back(absl::StrSplit(text, ' ', absl::SkipEmpty()));
  size_t number = 0;
  for (const auto &[name, member] : archive.members) {
    uint32_t joined = 0;
    for (uint64_t other = 0; other < size; ++other) {
      uint32_t sum = 0;
      if (number >= sums[other].size() ||
          !absl::SimpleAtoi(sums[other][number], &sum))
        return absl::FailedPreconditionError(absl::StrCat(
            "rank ", other, " has another file at ", archive.file->path()));
      joined = joinCrc32(joined, sum,
                         begin(member, other + 1) - begin(member, other));
    }
    if (joined != member.checksum)
      return absl::InvalidArgumentError(
          absl::StrCat(archive.file->path(), ", array \"", name,
                       "\": damaged: its bytes do not match their checksum"));
    ++number;
  }
  return absl::OkStatus();
}

static absl::StatusOr<Archive> openNpz(const std::string &path, Store *store,
                                       const OnProgress &onProgress) {
  absl::StatusOr<StoredArrays> stored = findStoredArrays(path);
  if (!stored.ok())
    return stored.status();
  std::set<std::string> inFile;
  Archive archive;
  for (const auto &[name, elements] : stored->arrays) {
    inFile.insert(name);
    archive.emplace(
        name,
        ArchivedArray{elements.header().dtype(), elements.header().shape(),
                      [elements = elements](int64_t first, int64_t count,
                                            HostArray &out) {
                        return elements.read(first, count, out, 0);
                      }});
  }
  // This also checks the archive itself.
  absl::StatusOr<std::map<std::string, absl::StatusOr<StoredArray>>> others =
      readNpzEntries(path, inFile, onProgress);
  if (!others.ok())
    return others.status();
  for (auto &[name, entry] : *others) {
    if (!entry.ok())
      return entry.status();
    auto array = std::make_shared<const HostArray>(std::move(entry->array));
    archive.emplace(
        name,
        ArchivedArray{array->dtype, array->shape,
                      [array](int64_t first, int64_t count, HostArray &out) {
                        const int64_t width = byteSize(array->dtype);
                        std::memcpy(out.data.data(),
                                    array->data.data() + first * width,
                                    count * width);
                        return absl::OkStatus();
                      }});
  }
  absl::Status status = verify(*stored, store, onProgress);
  return status.ok() ? absl::StatusOr<Archive>(std::move(archive)) : status;
}

static absl::StatusOr<Archive> openSafetensors(const std::string &path) {
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::open(path);
  if (!opened.ok())
    return opened.status();
  auto file = std::make_shared<const SafetensorsFile>(*std::move(opened));
  Archive archive;
  for (const SafetensorsEntry &entry : file->entries()) {
    if (absl::Status status = checkType(*file, entry); !status.ok())
      return status;
    archive.emplace(entry.name,
                    ArchivedArray{entry.dtype.value_or(DType::F32), entry.shape,
                                  [file, &entry](int64_t first, int64_t count,
                                                 HostArray &out) {
                                    return decodeElements(*file, entry, first,
                                                          count, out);
                                  }});
  }
  return archive;
}

/// Sets a parameter of `executor` from an array of as many elements.
static absl::Status set(Executor &executor, const TensorInfo &tensor,
                        const ArchivedArray &array,
                        const OnProgress &onProgress) {
  const int64_t width = byteSize(tensor.dtype);
  return executor.writeShards(
      tensor.name,
      [&](int64_t offset, char *data, int64_t bytes) -> absl::Status {
        constexpr int64_t piece = 1 << 16;
        const int64_t end = (offset + bytes) / width;
        for (int64_t at = offset / width; at < end; at += piece) {
          HostArray stored(array.dtype, {std::min(piece, end - at)});
          if (absl::Status status = array.read(at, stored.shape[0], stored);
              !status.ok())
            return status;
          absl::StatusOr<HostArray> converted = std::move(stored);
          if (converted->dtype != tensor.dtype)
            converted = convert(*converted, tensor.dtype, at);
          if (!converted.ok())
            return absl::InvalidArgumentError(
                absl::StrCat("parameter \"", tensor.name, "\", ",
                             converted.status().message()));
          std::memcpy(data, converted->data.data(), converted->data.size());
          data += converted->data.size();
          note(onProgress);
        }
        return absl::OkStatus();
      });
}

absl::Status shardc::rt::loadParameters(Executor &executor,
                                        const std::string &path,
                                        const OnProgress &onProgress) {
  absl::StatusOr<Archive> archive =
      isSafetensorsPath(path) ? openSafetensors(path)
                              : openNpz(path, executor.store(), onProgress);
  if (!archive.ok())
    return archive.status();
  for (const auto &[name, array] : *archive) {
    const TensorInfo *tensor = executor.plan().findTensor(name);
    if (!tensor ||
        (tensor->role != Role::Parameter && tensor->role != Role::State))
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": the model has no parameter \"", name, "\""));
  }
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    auto found = archive->find(tensor.name);
    bool isState = tensor.role == Role::State && found != archive->end();
    if (tensor.role != Role::Parameter && !isState)
      continue;
    if (found == archive->end())
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": parameter \"", tensor.name, "\" is missing; ",
                       describe(tensor.dtype, tensor.shape), " expected"));
    const ArchivedArray &array = found->second;
    bool isConvertible = array.dtype == tensor.dtype ||
                         (isFloat(array.dtype) && isFloat(tensor.dtype));
    if (!isConvertible || array.shape != tensor.shape)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": ", isState ? "state" : "parameter", " \"", tensor.name,
          "\" is ", describe(tensor.dtype, tensor.shape), ", got ",
          describe(isConvertible ? tensor.dtype : array.dtype, array.shape)));
    absl::Status status = set(executor, tensor, array, onProgress);
    // Those of reading have the path.
    if (absl::IsDataLoss(status))
      return status;
    if (!status.ok())
      return absl::Status(status.code(),
                          absl::StrCat(path, ": ", status.message()));
  }
  return absl::OkStatus();
}
