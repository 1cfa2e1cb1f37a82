//===- Checkpoint.cpp - Checkpoints that are read -------------------------===//

#include "shardc-rt/Checkpoint.h"

#include "base/Convert.h"
#include "base/ReadFile.h"
#include "base/ReadableFile.h"
#include "checkpoint/CopyShards.h"
#include "checkpoint/Manifest.h"
#include "checkpoint/WriterPeers.h"
#include "comm/Socket.h"

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <tuple>

using namespace shardc::rt;

struct Checkpoint::Files {
  std::map<std::string, ReadableFile> byName;
};

/// "w0", "b0" and 3 more: the tensors of a file, for messages.
static std::string contentOf(const Manifest &manifest,
                             const std::string &file) {
  std::vector<std::string> names;
  for (const ManifestTensor &tensor : manifest.tensors)
    if (tensor.file == file)
      names.push_back(absl::StrCat("\"", tensor.type.name, "\""));
  constexpr size_t most = 4;
  size_t rest = names.size() > most ? names.size() - most : 0;
  names.resize(names.size() - rest);
  std::string text = absl::StrJoin(names, ", ");
  return rest ? absl::StrCat(text, " and ", rest, " more") : text;
}

/// Whether a file is the one that the manifest describes: size and header are.
static absl::Status check(const Manifest &manifest, const ManifestFile &file,
                          const ReadableFile &found) {
  auto fault = [&](auto... parts) {
    return absl::DataLossError(absl::StrCat(found.path(), ": ", parts...));
  };
  if (found.bytes() < file.bytes) {
    for (const ManifestTensor &tensor : manifest.tensors)
      if (tensor.file == file.name &&
          tensor.begin + tensor.type.bytes() > found.bytes())
        return fault("it is cut off in tensor \"", tensor.type.name,
                     "\": it has ", found.bytes(), " bytes, expected ",
                     file.bytes);
    return fault("it is cut off: it has ", found.bytes(), " bytes, expected ",
                 file.bytes);
  }
  if (found.bytes() > file.bytes)
    return fault("it has ", found.bytes(), " bytes, expected ", file.bytes);
  absl::StatusOr<std::string> header = found.readUpTo(0, file.headerBytes);
  if (!header.ok())
    return header.status();
  if (checksumOf(*header) == file.headerChecksum)
    return absl::OkStatus();
  std::string tensors = contentOf(manifest, file.name);
  if (header->find(manifest.id) == header->npos &&
      header->find("\"checkpoint\":") != header->npos)
    return fault("it belongs to another checkpoint; it holds ", tensors);
  return fault("its header is damaged; it holds ", tensors);
}

/// The bytes of the manifest in a folder, parsed.
static absl::StatusOr<Manifest> readManifest(const std::string &folder) {
  std::string path = absl::StrCat(folder, "/", manifestName);
  absl::StatusOr<std::string> text = readFile(path);
  if (!text.ok())
    return absl::DataLossError(
        absl::StrCat(folder, ": no checkpoint: ", text.status().message()));
  absl::StatusOr<Manifest> manifest = parseManifest(*text);
  if (!manifest.ok())
    return absl::DataLossError(
        absl::StrCat(path, ": ", manifest.status().message()));
  return manifest;
}

absl::StatusOr<std::unique_ptr<Checkpoint>>
Checkpoint::open(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return absl::NotFoundError(
        absl::StrCat(path, ": there is no such checkpoint"));
  absl::StatusOr<Manifest> manifest = readManifest(path);
  if (!manifest.ok())
    return manifest.status();
  auto files = std::make_unique<Files>();
  for (const ManifestFile &file : manifest->files) {
    std::string name = absl::StrCat(path, "/", file.name);
    absl::StatusOr<ReadableFile> found = ReadableFile::open(name);
    if (!found.ok())
      return absl::DataLossError(absl::StrCat(found.status().message(),
                                              "; it holds ",
                                              contentOf(*manifest, file.name)));
    if (absl::Status status = check(*manifest, file, *found); !status.ok())
      return status;
    files->byName.emplace(file.name, *std::move(found));
  }
  for (const ManifestIndex &index : manifest->indexes) {
    std::string name = absl::StrCat(path, "/", index.name);
    absl::StatusOr<std::string> bytes = readFile(name);
    if (!bytes.ok())
      return absl::DataLossError(bytes.status().message());
    if (bytes->size() != index.bytes || checksumOf(*bytes) != index.checksum)
      return absl::DataLossError(absl::StrCat(
          name, ": it is damaged: its content does not match its checksum"));
  }
  return std::unique_ptr<Checkpoint>(new Checkpoint(
      path, std::make_unique<const Manifest>(*std::move(manifest)),
      std::move(files)));
}

Checkpoint::Checkpoint(std::string path,
                       std::unique_ptr<const Manifest> manifest,
                       std::unique_ptr<const Files> files)
    : ownPath(std::move(path)),
      ownFingerprint(fingerprintOf(manifest->tensors)),
      ownManifest(std::move(manifest)), files(std::move(files)) {}

Checkpoint::~Checkpoint() = default;

const std::string &Checkpoint::path() const { return ownPath; }

const TrainProgress &Checkpoint::progress() const {
  return ownManifest->progress;
}

const std::string &Checkpoint::mesh() const { return ownManifest->mesh; }

const std::string &Checkpoint::fingerprint() const { return ownFingerprint; }

const ReadableFile &Checkpoint::fileOf(size_t tensor) const {
  return files->byName.at(ownManifest->tensors[tensor].file);
}

namespace {
/// The shards of a checkpoint, by number over all tensors, and which of them
/// have been compared with their checksums.
class Shards {
public:
  explicit Shards(const Checkpoint &checkpoint) : checkpoint(checkpoint) {
    for (const ManifestTensor &tensor : checkpoint.manifest().tensors) {
      begins.push_back(isCompared.size());
      isCompared.resize(isCompared.size() + tensor.shards.size());
      bytes += tensor.type.bytes();
      ownOrder.push_back(ownOrder.size());
    }
    absl::c_sort(ownOrder, [&](size_t a, size_t b) {
      auto place = [&](size_t number) {
        const ManifestTensor &tensor = checkpoint.manifest().tensors[number];
        return std::make_tuple(absl::string_view(tensor.file), tensor.begin,
                               number);
      };
      return place(a) < place(b);
    });
  }

  /// The numbers of the tensors, as they lie in the files: the system reads
  /// ahead.
  const std::vector<size_t> &order() const { return ownOrder; }

  /// Copies a tensor to `places` and compares those of its shards on the way
  /// for which `isWanted(number, shard)`.
  template <typename IsWanted>
  void read(size_t tensor, absl::Span<const ShardPlace> places,
            IsWanted isWanted, const std::function<void()> &onProgress);

  /// Compares those whose numbers fulfil `isWanted`.
  template <typename IsWanted>
  void compare(IsWanted isWanted, const std::function<void()> &onProgress) {
    for (size_t tensor : ownOrder)
      read(
          tensor, {},
          [&](size_t number, const ManifestShard &) {
            return isWanted(number);
          },
          onProgress);
  }

  size_t size() const { return isCompared.size(); }

  /// By number; those that other processes have compared may be added.
  std::vector<bool> isCompared;
  /// A line for each that does not match.
  std::vector<std::string> faults;

private:
  const Checkpoint &checkpoint;
  std::vector<size_t> begins; ///< By tensor, the number of its first.
  std::vector<size_t> ownOrder;
  uint64_t bytes = 0;
  std::unique_ptr<WorkerPool> readers; ///< Null before the first read.
};
} // namespace

template <typename IsWanted>
void Shards::read(size_t tensor, absl::Span<const ShardPlace> places,
                  IsWanted isWanted, const std::function<void()> &onProgress) {
  const ManifestTensor &of = checkpoint.manifest().tensors[tensor];
  std::vector<size_t> numbers;
  std::vector<const ManifestShard *> checked;
  for (size_t i = 0; i < of.shards.size(); ++i)
    if (size_t number = begins[tensor] + i;
        !isCompared[number] && isWanted(number, of.shards[i])) {
      numbers.push_back(number);
      checked.push_back(&of.shards[i]);
    }
  if (checked.empty() && places.empty())
    return;
  if (!readers)
    readers = makeReaders(bytes);
  absl::StatusOr<std::vector<uint32_t>> sums =
      copyShards(of.type, {checkpoint.fileOf(tensor), of.begin}, checked,
                 places, *readers, onProgress);
  if (!sums.ok())
    faults.push_back(absl::StrCat(sums.status().message(), ", in tensor \"",
                                  of.type.name, "\""));
  for (size_t i = 0; i < checked.size(); ++i) {
    isCompared[numbers[i]] = true;
    if (sums.ok() && (*sums)[i] != checked[i]->checksum)
      faults.push_back(absl::StrCat(checkpoint.path(), "/", of.file,
                                    ": tensor \"", of.type.name,
                                    "\", shard of ", checked[i]->describe(),
                                    ": its bytes do not match their checksum"));
  }
}

std::vector<std::string> Checkpoint::verify() const {
  Shards shards(*this);
  shards.compare([](size_t) { return true; }, nullptr);
  return shards.faults;
}

static absl::Status toStatus(const std::vector<std::string> &faults) {
  return faults.empty() ? absl::OkStatus()
                        : absl::DataLossError(absl::StrJoin(faults, "\n"));
}

/// The first error of those that the processes pass; OK: none has one.
static absl::Status agree(const absl::Status &mine,
                          const ReadCheckpointOptions &options) {
  if (!options.store)
    return mine;
  absl::StatusOr<std::vector<std::string>> all = options.store->gatherAll(
      "reading a checkpoint", formatStatus(mine), options.deadline);
  if (!all.ok())
    return all.status();
  for (const std::string &other : *all)
    if (absl::Status status = parseStatus(other); !status.ok())
      return status;
  return absl::OkStatus();
}

/// Whether a process is the one of all to read shard `number`.
static bool isShareOf(const ReadCheckpointOptions &options, size_t number) {
  return !options.store ||
         static_cast<int>(number % options.store->ranks().size) ==
             options.store->ranks().rank;
}

absl::Status Checkpoint::verifyOnce(const ReadCheckpointOptions &options) {
  if (isVerified)
    return absl::OkStatus();
  Shards shards(*this);
  shards.compare([&](size_t number) { return isShareOf(options, number); },
                 options.onProgress);
  absl::Status status = agree(toStatus(shards.faults), options);
  isVerified = status.ok();
  return status;
}

absl::Status Checkpoint::checkAgainst(const Plan &plan) const {
  auto differ = [&](absl::string_view difference) {
    return absl::InvalidArgumentError(
        absl::StrCat(ownPath, " is of another model: ", difference));
  };
  std::vector<ManifestTensor> tensors = tensorsOf(plan.spec());
  for (const ManifestTensor &own : tensors) {
    std::string name =
        absl::StrCat(toString(own.role), " \"", own.type.name, "\"");
    std::string expected = describe(own.type.dtype, own.type.shape);
    const ManifestTensor *found = ownManifest->findTensor(own.type.name);
    if (!found)
      return differ(absl::StrCat("it has no ", name, ", which is ", expected));
    std::string there = describe(found->type.dtype, found->type.shape);
    if (there != expected || found->role != own.role)
      return differ(absl::StrCat(name, " is ", expected, ", there it is ",
                                 toString(found->role), " ", there));
  }
  for (const ManifestTensor &found : ownManifest->tensors)
    if (!absl::c_any_of(tensors, [&](const ManifestTensor &own) {
          return own.type.name == found.type.name;
        }))
      return differ(absl::StrCat("it has a ", toString(found.role), " \"",
                                 found.type.name, "\", which this one lacks"));
  return absl::OkStatus();
}

/// Adds those that other processes have compared.
static absl::Status addOthers(std::vector<bool> &isCompared,
                              const ReadCheckpointOptions &options) {
  std::string mine;
  for (bool is : isCompared)
    mine += is ? '1' : '0';
  absl::StatusOr<std::vector<std::string>> all =
      options.store->gatherAll("reading a checkpoint", mine, options.deadline);
  if (!all.ok())
    return all.status();
  for (const std::string &other : *all)
    for (size_t i = 0; i < std::min(other.size(), mine.size()); ++i)
      if (other[i] == '1')
        isCompared[i] = true;
  return absl::OkStatus();
}

absl::Status Checkpoint::set(Executor &executor,
                             const ReadCheckpointOptions &options) const {
  Shards shards(*this);
  absl::Status status;
  for (size_t tensor : shards.order())
    if (status.ok())
      status = executor.fillShards(
          ownManifest->tensors[tensor].type.name,
          [&](absl::Span<const ShardPlace> places) {
            shards.read(
                tensor, places,
                [&](size_t, const ManifestShard &shard) {
                  return !isVerified && holdAll(places, shard);
                },
                options.onProgress);
            return absl::OkStatus();
          });
  // All processes make the same calls.
  if (!isVerified && options.store)
    status.Update(addOthers(shards.isCompared, options));
  if (!isVerified && status.ok())
    shards.compare([&](size_t number) { return isShareOf(options, number); },
                   options.onProgress);
  status.Update(toStatus(shards.faults));
  return agree(status, options);
}

absl::Status Checkpoint::load(Executor &executor,
                              const ReadCheckpointOptions &options) const {
  if (absl::Status status = checkAgainst(executor.plan()); !status.ok())
    return status;
  absl::Status status = set(executor, options);
  // Nobody is to go on with a part of it.
  if (!status.ok())
    for (const ManifestTensor &tensor : ownManifest->tensors)
      executor
          .fillShards(tensor.type.name,
                      [&](absl::Span<const ShardPlace>) { return status; })
          .IgnoreError();
  return status;
}

absl::StatusOr<ArrayMap> Checkpoint::readParameters() const {
  Shards shards(*this);
  ArrayMap arrays;
  for (size_t i = 0; i < ownManifest->tensors.size(); ++i) {
    const ManifestTensor &tensor = ownManifest->tensors[i];
    if (tensor.role != Role::Parameter)
      continue;
    HostArray array(tensor.type.dtype, tensor.type.shape);
    std::vector<int64_t> start(array.shape.size());
    shards.read(
        i,
        {ShardPlace{{start, array.shape, array.shape},
                    reinterpret_cast<char *>(array.data.data())}},
        [](size_t, const ManifestShard &) { return true; }, nullptr);
    if (!shards.faults.empty())
      continue;
    // As in the archives of saveParameters.
    absl::StatusOr<HostArray> result = std::move(array);
    if (result->dtype == DType::BF16)
      result = convert(*result, DType::F32);
    if (!result.ok())
      return result.status();
    arrays.emplace(tensor.type.name, *std::move(result));
  }
  if (!shards.faults.empty())
    return toStatus(shards.faults);
  return arrays;
}

absl::StatusOr<std::vector<CheckpointName>>
shardc::rt::listCheckpoints(const std::string &folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    return absl::NotFoundError(
        absl::StrCat(folder, ": cannot open: ", error.message()));
  std::vector<CheckpointName> names;
  for (; entries != std::filesystem::directory_iterator();
       entries.increment(error)) {
    std::string file = entries->path().filename().string();
    absl::string_view step = file;
    CheckpointName name;
    if (!absl::ConsumePrefix(&step, "step-") ||
        step.find_first_not_of("0123456789") != step.npos ||
        !absl::SimpleAtoi(step, &name.step))
      continue;
    name.path = absl::StrCat(folder, "/", file);
    absl::StatusOr<Manifest> manifest = readManifest(name.path);
    name.status = manifest.status();
    if (manifest.ok() && manifest->progress.steps != name.step)
      name.status = absl::DataLossError(
          absl::StrCat(name.path, "/", manifestName, ": it is that of step ",
                       manifest->progress.steps));
    if (name.status.ok()) {
      name.sequence = manifest->sequence;
      name.fingerprint = fingerprintOf(manifest->tensors);
    }
    names.push_back(std::move(name));
  }
  if (error)
    return absl::NotFoundError(
        absl::StrCat(folder, ": cannot read: ", error.message()));
  absl::c_sort(names, [](const CheckpointName &a, const CheckpointName &b) {
    auto key = [](const CheckpointName &name) {
      return std::make_tuple(name.status.ok(), -name.sequence, -name.step);
    };
    return key(a) < key(b);
  });
  return names;
}

/// The checkpoint that rank 0 tries next: its path, or why there is none. The
/// same in all processes.
static absl::StatusOr<std::string>
nextPath(const absl::StatusOr<std::string> &mine,
         const ReadCheckpointOptions &options) {
  if (!options.store)
    return mine;
  absl::StatusOr<std::string> told = options.store->broadcast(
      "looking for checkpoints",
      mine.ok() ? absl::StrCat(formatStatus(absl::OkStatus()), *mine)
                : formatStatus(mine.status()),
      options.deadline);
  if (!told.ok())
    return told;
  absl::Status status = parseStatus(*told);
  if (status.code() == absl::StatusCode::kOk)
    return told->substr(formatStatus(absl::OkStatus()).size());
  return status;
}

/// The checkpoint that was written last, of those for which `check` succeeds in
/// all processes.
static absl::StatusOr<std::unique_ptr<Checkpoint>>
findLatest(const std::string &folder, const ReadCheckpointOptions &options,
           absl::FunctionRef<absl::Status(Checkpoint &)> check) {
  absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
  for (size_t i = 0;; ++i) {
    absl::StatusOr<std::string> mine = std::string();
    if (!names.ok())
      mine = names.status();
    else if (i < names->size() &&
             absl::c_linear_search(options.leaveOut, (*names)[i].path))
      continue;
    else if (i == names->size())
      mine = absl::NotFoundError(absl::StrCat(folder, ": there is no ",
                                              names->empty() ? "" : "whole ",
                                              "checkpoint"));
    else if ((*names)[i].status.ok())
      mine = (*names)[i].path;
    else
      mine = (*names)[i].status;
    absl::StatusOr<std::string> path = nextPath(mine, options);
    absl::Status status = path.status();
    if (status.ok()) {
      absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
          Checkpoint::open(*path);
      // Rank 0 has just found it.
      status = checkpoint.status();
      if (options.store && absl::IsNotFound(status))
        status = absl::FailedPreconditionError(
            absl::StrCat(status.message(), " on ", hostName(),
                         "; expected a folder that all processes share"));
      status = agree(status, options);
      if (status.ok())
        status = check(**checkpoint);
      if (status.ok())
        return checkpoint;
    }
    if (!absl::IsDataLoss(status))
      return status;
    if (options.onDamaged)
      options.onDamaged(status);
  }
}

absl::StatusOr<std::unique_ptr<Checkpoint>>
shardc::rt::findLatestCheckpoint(const std::string &folder,
                                 const ReadCheckpointOptions &options) {
  return findLatest(folder, options,
                    [](Checkpoint &) { return absl::OkStatus(); });
}

absl::StatusOr<std::unique_ptr<Checkpoint>>
shardc::rt::openLatestCheckpoint(const std::string &folder,
                                 const ReadCheckpointOptions &options) {
  return findLatest(folder, options, [&](Checkpoint &checkpoint) {
    return checkpoint.verifyOnce(options);
  });
}

absl::StatusOr<std::unique_ptr<Checkpoint>>
shardc::rt::loadLatestCheckpoint(const std::string &folder, Executor &executor,
                                 const ReadCheckpointOptions &options) {
  return findLatest(folder, options, [&](Checkpoint &checkpoint) {
    return checkpoint.load(executor, options);
  });
}
