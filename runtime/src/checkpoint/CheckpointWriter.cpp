//===- CheckpointWriter.cpp - Checkpoints that are written ----------------===//
//
// A checkpoint is written to DIR/step-N.tmp: safetensors files, then their
// indexes, then the manifest, each flushed to the disk. The folder is flushed,
// gets its name, and so is DIR. Whatever is left of a write that did not end
// has ".tmp" in its name, and the next writer of DIR removes it.
//
// Tensors are stored whole, whatever their sharding: the shards of a tensor
// have disjoint ranges of its bytes, and each is written by the first device
// that holds it. One process holds all of them and writes a file from its
// beginning to its end. Several processes can each write the ranges of their
// own devices into the same file, since header and offsets follow from global
// shapes, which all of them know.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Checkpoint.h"

#include "base/Convert.h"
#include "base/Memory.h"
#include "checkpoint/Files.h"
#include "checkpoint/Manifest.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

namespace {
/// A copy of a training between two steps, as the files will hold it.
struct Snapshot {
  Manifest manifest;
  /// The data of each of its files.
  std::vector<Memory> data;
  double copySeconds = 0;

  uint64_t bytes() const;
  char *place(const ManifestTensor &tensor, size_t file) const {
    return data[file].get() + tensor.begin - manifest.files[file].headerBytes;
  }
};
} // namespace

uint64_t Snapshot::bytes() const {
  uint64_t bytes = 0;
  for (const ManifestFile &file : manifest.files)
    bytes += file.bytes - file.headerBytes;
  return bytes;
}

struct CheckpointWriter::Implementation {
  CheckpointOptions options;
  int lock = -1; ///< Descriptor of the lock's file.
  int64_t sequence = 0;
  Snapshot snapshot; ///< Of the write in progress, or of the last one.
  std::vector<std::string> headers; ///< Of its files.
  std::string fingerprint;          ///< Of the model that it has memory for.

  std::mutex mutex;
  std::condition_variable changed;
  bool isPending = false; ///< A snapshot is there to be written.
  bool isEnding = false;
  std::vector<CheckpointResult> results;
  std::thread thread;

  ~Implementation();
  void work();
  void wait();
  absl::Status prepare(const Plan &plan);
  CheckpointResult write();
  absl::Status writeFolder(const std::string &folder);
  absl::Status checkFinite() const;
  absl::Status prune() const;
};

/// Random digits, so that no two checkpoints have the same.
static std::string makeId() {
  uint64_t bits = 0;
  if (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
    bits = static_cast<uint64_t>(Clock::now().time_since_epoch().count() ^
                                 (int64_t(getpid()) << 40));
  return absl::StrFormat("%016x", bits);
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

/// Removes what writes that did not end have left.
static absl::Status removeRemains(const std::string &folder) {
  std::error_code error;
  std::vector<std::string> remains;
  for (std::filesystem::directory_iterator entries(folder, error), end;
       !error && entries != end; entries.increment(error)) {
    std::string name = entries->path().filename().string();
    if (absl::StartsWith(name, "step-") && absl::StrContains(name, ".tmp"))
      remains.push_back(absl::StrCat(folder, "/", name));
  }
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": cannot read: ", error.message()));
  for (const std::string &path : remains)
    if (absl::Status status = removeAll(path); !status.ok())
      return status;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>>
CheckpointWriter::open(CheckpointOptions options) {
  std::error_code error;
  const std::string &folder = options.folder;
  std::filesystem::create_directories(folder, error);
  auto implementation = std::make_unique<Implementation>();
  std::string path = absl::StrCat(folder, "/.lock");
  implementation->lock =
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (implementation->lock < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        folder,
        ": cannot write: ", error ? error.message() : std::strerror(errno)));
  if (flock(implementation->lock, LOCK_EX | LOCK_NB) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": another training writes its checkpoints here; "
                             "expected a folder for each"));
  if (absl::Status status = removeRemains(folder); !status.ok())
    return status;
  absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
  if (!names.ok())
    return names.status();
  for (const CheckpointName &name : *names)
    implementation->sequence =
        std::max(implementation->sequence, name.sequence);
  implementation->options = std::move(options);
  Implementation *self = implementation.get();
  self->thread = std::thread([self] { self->work(); });
  return std::unique_ptr<CheckpointWriter>(
      new CheckpointWriter(std::move(implementation)));
}

CheckpointWriter::CheckpointWriter(
    std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}

CheckpointWriter::~CheckpointWriter() = default;

CheckpointWriter::Implementation::~Implementation() {
  if (thread.joinable()) {
    {
      std::lock_guard<std::mutex> guard(mutex);
      isEnding = true;
    }
    changed.notify_all();
    thread.join();
  }
  if (lock >= 0)
    close(lock);
}

//===----------------------------------------------------------------------===//
// The copy
//===----------------------------------------------------------------------===//

/// Assigns tensors to files of at most `maxBytes` where that is possible:
/// "model" has the parameters, "optimizer" the states.
static std::vector<std::vector<size_t>>
divide(const std::vector<ManifestTensor> &tensors, Role role,
       uint64_t maxBytes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].role == role)
      order.push_back(i);
  // Wide types first, so that all are aligned.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return byteSize(tensors[a].type.dtype) > byteSize(tensors[b].type.dtype);
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

/// Lays out the files of a plan's checkpoints and allocates their data, unless
/// that was done for the same model.
absl::Status CheckpointWriter::Implementation::prepare(const Plan &plan) {
  Manifest &manifest = snapshot.manifest;
  std::vector<ManifestTensor> tensors = tensorsOf(plan.spec());
  manifest.model = plan.model();
  manifest.mesh = plan.mesh();
  manifest.id = makeId();
  bool isKnown = fingerprintOf(tensors) == fingerprint;
  manifest.tensors = std::move(tensors);
  manifest.files.clear();
  headers.clear();
  size_t number = 0;
  for (Role role : {Role::Parameter, Role::State}) {
    std::vector<std::vector<size_t>> files =
        divide(manifest.tensors, role, options.maxFileBytes);
    for (size_t i = 0; i < files.size(); ++i, ++number) {
      std::vector<TensorType> types;
      for (size_t tensor : files[i])
        types.push_back(manifest.tensors[tensor].type);
      // Hugging Face's libraries want to be told of a framework.
      absl::StatusOr<std::string> header = formatSafetensorsHeader(
          types, {{"format", "pt"}, {"checkpoint", manifest.id}});
      if (!header.ok())
        return header.status();
      ManifestFile &file = manifest.files.emplace_back();
      file.name = absl::StrFormat(
          "%s-%05d-of-%05d.safetensors",
          role == Role::Parameter ? "model" : "optimizer", i + 1, files.size());
      file.headerBytes = file.bytes = header->size();
      file.headerChecksum = checksumOf(*header);
      for (size_t tensor : files[i]) {
        manifest.tensors[tensor].file = file.name;
        manifest.tensors[tensor].begin = file.bytes;
        file.bytes += manifest.tensors[tensor].type.bytes();
      }
      headers.push_back(*std::move(header));
    }
  }
  if (isKnown && snapshot.data.size() == manifest.files.size())
    return absl::OkStatus();
  snapshot.data.clear();
  for (const ManifestFile &file : manifest.files) {
    uint64_t bytes = file.bytes - file.headerBytes;
    Memory &data = snapshot.data.emplace_back();
    if (!data.allocate(bytes)) {
      snapshot.data.clear();
      return absl::ResourceExhaustedError(
          absl::StrCat("out of memory: cannot allocate ", snapshot.bytes(),
                       " bytes for the copy of a checkpoint"));
    }
    // No copy waits for pages.
    data.touch(bytes);
  }
  fingerprint = fingerprintOf(manifest.tensors);
  return absl::OkStatus();
}

absl::Status CheckpointWriter::reserve(const Plan &plan) {
  implementation->wait();
  return implementation->prepare(plan);
}

absl::Status CheckpointWriter::save(const Executor &executor,
                                    const TrainProgress &progress) {
  Implementation &self = *implementation;
  self.wait();
  Clock::time_point start = Clock::now();
  if (absl::Status status = self.prepare(executor.plan()); !status.ok())
    return status;
  Manifest &manifest = self.snapshot.manifest;
  manifest.progress = progress;
  for (const ManifestTensor &tensor : manifest.tensors) {
    size_t file = manifest.findFile(tensor.file) - manifest.files.data();
    if (absl::Status status = executor.readTensor(
            tensor.type.name, self.snapshot.place(tensor, file));
        !status.ok())
      return status;
  }
  manifest.sequence = ++self.sequence;
  manifest.writtenAt = std::time(nullptr);
  self.snapshot.copySeconds = secondsSince(start);
  {
    std::lock_guard<std::mutex> guard(self.mutex);
    self.isPending = true;
  }
  self.changed.notify_all();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The write
//===----------------------------------------------------------------------===//

void CheckpointWriter::Implementation::work() {
  std::unique_lock<std::mutex> guard(mutex);
  for (;;) {
    changed.wait(guard, [&] { return isPending || isEnding; });
    if (!isPending)
      return;
    guard.unlock();
    CheckpointResult result = write();
    guard.lock();
    results.push_back(std::move(result));
    isPending = false;
    changed.notify_all();
  }
}

void CheckpointWriter::Implementation::wait() {
  std::unique_lock<std::mutex> guard(mutex);
  changed.wait(guard, [&] { return !isPending; });
}

void CheckpointWriter::wait() { implementation->wait(); }

std::vector<CheckpointResult> CheckpointWriter::takeResults() {
  std::lock_guard<std::mutex> guard(implementation->mutex);
  return std::exchange(implementation->results, {});
}

/// Whether all of `count` numbers of a type with this many bits of exponent and
/// fraction are finite.
template <typename T>
static bool areFinite(const char *data, int64_t count, T exponent) {
  bool result = true;
  for (int64_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, data + i * sizeof(T), sizeof(T));
    result &= (bits & exponent) != exponent;
  }
  return result;
}

absl::Status CheckpointWriter::Implementation::checkFinite() const {
  const Manifest &manifest = snapshot.manifest;
  for (const ManifestTensor &tensor : manifest.tensors) {
    size_t file = manifest.findFile(tensor.file) - manifest.files.data();
    const char *data = snapshot.place(tensor, file);
    int64_t count = numElements(tensor.type.shape);
    bool isFine = true;
    switch (tensor.type.dtype) {
    case DType::F32:
      isFine = areFinite<uint32_t>(data, count, 0x7f800000);
      break;
    case DType::BF16:
      isFine = areFinite<uint16_t>(data, count, 0x7f80);
      break;
    case DType::F64:
      isFine = areFinite<uint64_t>(data, count, 0x7ff0000000000000);
      break;
    case DType::I32:
    case DType::I64:
    case DType::Bool:
      break;
    }
    if (!isFine)
      return absl::OutOfRangeError(
          absl::StrCat(toString(tensor.role), " \"", tensor.type.name,
                       "\" has a value that is not finite"));
  }
  return absl::OkStatus();
}

/// The index of the files whose names begin with `kind`, as Hugging Face's
/// libraries read it.
static std::string formatIndex(const Manifest &manifest,
                               const std::string &kind) {
  uint64_t bytes = 0;
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const ManifestTensor &tensor : manifest.tensors)
    if (absl::StartsWith(tensor.file, kind)) {
      map[tensor.type.name] = tensor.file;
      bytes += tensor.type.bytes();
    }
  nlohmann::ordered_json json;
  json["metadata"] = {{"total_size", bytes}};
  json["weight_map"] = std::move(map);
  return json.dump(2) + "\n";
}

/// Writes the files of the snapshot into a new folder.
absl::Status
CheckpointWriter::Implementation::writeFolder(const std::string &folder) {
  Manifest &manifest = snapshot.manifest;
  if (absl::Status status = makeFolder(folder); !status.ok())
    return status;
  for (size_t i = 0; i < manifest.files.size(); ++i) {
    const ManifestFile &file = manifest.files[i];
    uint64_t bytes = file.bytes - file.headerBytes;
    for (ManifestTensor &tensor : manifest.tensors)
      if (tensor.file == file.name)
        for (ManifestShard &shard : tensor.shards)
          shard.checksum =
              checksumOf(tensor.type, shard,
                         {snapshot.place(tensor, i), tensor.type.bytes()});
    if (absl::Status status =
            writeFile(absl::StrCat(folder, "/", file.name),
                      {headers[i], {snapshot.data[i].get(), bytes}});
        !status.ok())
      return status;
  }
  manifest.indexes.clear();
  for (const char *kind : {"model", "optimizer"}) {
    std::string text = formatIndex(manifest, absl::StrCat(kind, "-"));
    std::string name = absl::StrCat(kind, ".safetensors.index.json");
    if (absl::Status status =
            writeFile(absl::StrCat(folder, "/", name), {text});
        !status.ok())
      return status;
    manifest.indexes.push_back({name, text.size(), checksumOf(text)});
  }
  if (absl::Status status = writeFile(absl::StrCat(folder, "/", manifestName),
                                      {formatManifest(manifest)});
      !status.ok())
    return status;
  return syncFolder(folder);
}

/// Removes the oldest checkpoints beyond those to keep.
absl::Status CheckpointWriter::Implementation::prune() const {
  if (options.keep == 0)
    return absl::OkStatus();
  absl::StatusOr<std::vector<CheckpointName>> names =
      listCheckpoints(options.folder);
  if (!names.ok())
    return names.status();
  int64_t whole = 0;
  for (const CheckpointName &name : *names) {
    if (!name.status.ok() || ++whole <= options.keep)
      continue;
    // It never looks like a checkpoint that is damaged.
    std::string path = absl::StrCat(name.path, ".tmp");
    if (absl::Status status = removeAll(path); !status.ok())
      return status;
    if (rename(name.path.c_str(), path.c_str()) != 0)
      return absl::InvalidArgumentError(
          absl::StrCat(name.path, ": cannot remove: ", std::strerror(errno)));
    if (absl::Status status = removeAll(path); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

CheckpointResult CheckpointWriter::Implementation::write() {
  Clock::time_point start = Clock::now();
  CheckpointResult result;
  result.step = snapshot.manifest.progress.steps;
  result.path = absl::StrCat(options.folder, "/step-", result.step);
  result.bytes = snapshot.bytes();
  result.copySeconds = snapshot.copySeconds;
  std::string folder = absl::StrCat(result.path, ".tmp");
  result.status = checkFinite();
  if (result.status.ok())
    result.status = removeAll(folder);
  if (result.status.ok()) {
    result.status = writeFolder(folder);
    if (result.status.ok())
      result.status = publishFolder(folder, result.path);
    if (result.status.ok())
      result.status = prune();
    else
      removeAll(folder).IgnoreError();
  }
  result.seconds = secondsSince(start);
  return result;
}
