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
// beginning to its end. Of several processes each writes the ranges of its
// own devices into the same files, since header and offsets follow from global
// shapes, which all of them know; short parts, as of columns, go there by
// shared pages where all processes are on one host: rank 0 makes the files, all
// write and flush, then rank 0 writes the manifest with their checksums and
// gives the folder its name.
//
//===----------------------------------------------------------------------===//

#include "shardc-rt/Checkpoint.h"

#include "checkpoint/Files.h"
#include "checkpoint/Manifest.h"
#include "checkpoint/Snapshot.h"
#include "checkpoint/WriterPeers.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
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

struct CheckpointWriter::Implementation {
  explicit Implementation(CheckpointOptions options)
      : options(std::move(options)), progress(this->options.store),
        peers(this->options.store, this->options.deadline, progress) {}

  const CheckpointOptions options;
  WriteProgress progress;
  WriterPeers peers;
  int lock = -1; ///< Descriptor of the lock's file, on rank 0.
  int64_t sequence = 0;
  std::vector<CheckpointName> found; ///< When it was opened, on rank 0.
  Snapshot snapshot;      ///< Of the write in progress, or of the last one.
  int64_t numDevices = 0; ///< Of its mesh.
  double copySeconds = 0; ///< Of it.

  std::mutex mutex;
  std::condition_variable changed;
  bool isPending = false; ///< A snapshot is there to be written.
  bool isEnding = false;
  std::vector<CheckpointResult> results;
  std::thread thread;

  ~Implementation();
  absl::Status lockFolder();
  void work();
  void wait();
  absl::Status prepare(const Plan &plan);
  CheckpointResult write();
  absl::Status writeTogether(const std::string &folder,
                             const std::string &path);
  absl::StatusOr<std::vector<WritableFile>>
  makeFiles(const std::string &folder);
  absl::StatusOr<std::string> writeShards(const std::string &folder,
                                          std::vector<WritableFile> &files);
  absl::Status takeChecksums(const std::vector<std::string> &all);
  absl::Status writeManifest(const std::string &folder);
  absl::Status prune();
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

/// Makes and locks the folder, and removes remains.
absl::Status CheckpointWriter::Implementation::lockFolder() {
  std::error_code error;
  const std::string &folder = options.folder;
  std::filesystem::create_directories(folder, error);
  std::string path = absl::StrCat(folder, "/.lock");
  lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock < 0)
    return absl::InvalidArgumentError(absl::StrCat(
        folder,
        ": cannot write: ", error ? error.message() : std::strerror(errno)));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": another training writes its checkpoints here; "
                             "expected a folder for each"));
  absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
  if (!names.ok())
    return names.status();
  if (!names->empty() && !options.goesOn)
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": it has checkpoints of another training; "
                             "expected a folder for each"));
  if (absl::Status status = removeRemains(folder); !status.ok())
    return status;
  for (const CheckpointName &name : *names)
    sequence = std::max(sequence, name.sequence);
  found = *std::move(names);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CheckpointWriter>>
CheckpointWriter::open(CheckpointOptions options) {
  auto implementation = std::make_unique<Implementation>(std::move(options));
  Implementation *self = implementation.get();
  WriterPeers &peers = self->peers;
  if (absl::Status status = peers.begin(makeId()); !status.ok())
    return status;
  absl::Status status = peers.fromFirst(
      "opened", peers.isFirst() ? self->lockFolder() : absl::OkStatus());
  if (status.ok())
    status = peers.compareFileSystems(self->options.folder);
  if (!status.ok())
    return status;
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

absl::Status CheckpointWriter::Implementation::prepare(const Plan &plan) {
  Manifest &manifest = snapshot.manifest;
  manifest.model = plan.model();
  manifest.mesh = plan.mesh();
  manifest.id = makeId();
  if (absl::Status status = snapshot.prepare(
          plan, peers.devicesOf(peers.rank(), plan.numDevices()),
          options.maxFileBytes);
      !status.ok())
    return status;
  // Earlier versions have let several write into one folder.
  const std::string fingerprint = fingerprintOf(manifest.tensors);
  for (const CheckpointName &name : found)
    if (name.status.ok() && name.fingerprint != fingerprint)
      return absl::FailedPreconditionError(
          absl::StrCat(name.path, " is of another model; expected a folder for "
                                  "the checkpoints of each training"));
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
  if (absl::Status status = self.snapshot.copy(executor); !status.ok())
    return status;
  Manifest &manifest = self.snapshot.manifest;
  manifest.progress = progress;
  manifest.sequence = ++self.sequence;
  manifest.writtenAt = std::time(nullptr);
  self.numDevices = executor.plan().numDevices();
  self.copySeconds = secondsSince(start);
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
  uint64_t known = progress.count();
  while (!changed.wait_for(guard, std::chrono::milliseconds(50),
                           [&] { return !isPending; })) {
    if (known == progress.count() || !options.onProgress)
      continue;
    known = progress.count();
    guard.unlock();
    options.onProgress();
    guard.lock();
  }
}

void CheckpointWriter::wait() { implementation->wait(); }

std::vector<CheckpointResult> CheckpointWriter::takeResults() {
  std::lock_guard<std::mutex> guard(implementation->mutex);
  return std::exchange(implementation->results, {});
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

/// Makes the files of the snapshot in a new folder, with their headers.
absl::StatusOr<std::vector<WritableFile>>
CheckpointWriter::Implementation::makeFiles(const std::string &folder) {
  if (absl::Status status = removeAll(folder); !status.ok())
    return status;
  if (absl::Status status = makeFolder(folder); !status.ok())
    return status;
  std::vector<WritableFile> files;
  for (size_t i = 0; i < snapshot.manifest.files.size(); ++i) {
    absl::StatusOr<WritableFile> file = WritableFile::make(
        absl::StrCat(folder, "/", snapshot.manifest.files[i].name));
    if (!file.ok())
      return file.status();
    file->onProgress([this] { progress.note(); });
    if (absl::Status status = file->write(0, snapshot.header(i)); !status.ok())
      return status;
    files.push_back(*std::move(file));
  }
  return files;
}

/// Writes and flushes what this process has; returns its checksums, which it
/// computes while the disk writes. `files` are those that are open already.
absl::StatusOr<std::string> CheckpointWriter::Implementation::writeShards(
    const std::string &folder, std::vector<WritableFile> &files) {
  for (size_t i = 0; i < snapshot.manifest.files.size(); ++i) {
    if (files.size() <= i) {
      absl::StatusOr<WritableFile> file = WritableFile::open(
          absl::StrCat(folder, "/", snapshot.manifest.files[i].name));
      if (!file.ok())
        return absl::Status(
            file.status().code(),
            absl::StrCat(file.status().message(),
                         "; expected a folder that all processes share"));
      file->onProgress([this] { progress.note(); });
      files.push_back(*std::move(file));
    }
    absl::Status status;
    if (peers.sharePages() && snapshot.hasShortParts(i))
      status = files[i].mapFirst(snapshot.manifest.files[i].bytes);
    if (status.ok())
      status = snapshot.write(i, files[i]);
    if (!status.ok())
      return status;
  }
  if (absl::Status status = snapshot.check([this] { progress.note(); });
      !status.ok())
    return status;
  for (WritableFile &file : files) {
    if (absl::Status status = file.close(); !status.ok())
      return status;
    progress.note();
  }
  std::string checksums;
  snapshot.forEachShard(
      peers.devicesOf(peers.rank(), numDevices),
      [&](const ManifestTensor &, const ManifestShard &shard) {
        absl::StrAppend(&checksums, shard.checksum, " ");
      });
  return checksums;
}

/// Takes over the checksums of all processes.
absl::Status CheckpointWriter::Implementation::takeChecksums(
    const std::vector<std::string> &all) {
  for (int rank = 1; rank < peers.size(); ++rank) {
    std::vector<absl::string_view> texts =
        absl::StrSplit(all[rank], ' ', absl::SkipEmpty());
    size_t taken = 0;
    bool isRight = true;
    snapshot.forEachShard(peers.devicesOf(rank, numDevices),
                          [&](const ManifestTensor &, ManifestShard &shard) {
                            isRight &=
                                taken < texts.size() &&
                                absl::SimpleAtoi(texts[taken], &shard.checksum);
                            ++taken;
                          });
    if (!isRight || taken != texts.size())
      return absl::InternalError(absl::StrCat("rank ", rank, " sent ",
                                              texts.size(),
                                              " checksums, expected ", taken));
  }
  return absl::OkStatus();
}

/// Writes what tells of the shards, and flushes the folder.
absl::Status
CheckpointWriter::Implementation::writeManifest(const std::string &folder) {
  Manifest &manifest = snapshot.manifest;
  manifest.indexes.clear();
  for (const char *kind : {"model", "optimizer"}) {
    std::string text = formatIndex(manifest, absl::StrCat(kind, "-"));
    std::string name = absl::StrCat(kind, ".safetensors.index.json");
    if (absl::Status status =
            writeFile(absl::StrCat(folder, "/", name), {text});
        !status.ok())
      return status;
    manifest.indexes.push_back({name, text.size(), checksumOf(text)});
    progress.note();
  }
  if (absl::Status status = writeFile(absl::StrCat(folder, "/", manifestName),
                                      {formatManifest(manifest)});
      !status.ok())
    return status;
  progress.note();
  return syncFolder(folder);
}

/// Removes the oldest checkpoints beyond those to keep.
absl::Status CheckpointWriter::Implementation::prune() {
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
    progress.note();
  }
  return absl::OkStatus();
}

/// Writes the snapshot to `folder`, which gets the name `path`, with all other
/// processes. Returns the same in all of them.
absl::Status
CheckpointWriter::Implementation::writeTogether(const std::string &folder,
                                                const std::string &path) {
  std::vector<WritableFile> files;
  absl::Status made;
  if (peers.isFirst()) {
    absl::StatusOr<std::vector<WritableFile>> opened = makeFiles(folder);
    made = opened.status();
    if (opened.ok())
      files = *std::move(opened);
  }
  absl::Status status = peers.fromFirst("made the files", made);
  if (status.ok()) {
    absl::StatusOr<std::vector<std::string>> all =
        peers.toFirst("written", writeShards(folder, files));
    status = all.status();
    if (peers.isFirst() && status.ok())
      status = takeChecksums(*all);
    if (peers.isFirst() && status.ok())
      status = writeManifest(folder);
    progress.note();
    if (peers.isFirst() && status.ok())
      status = publishFolder(folder, path);
    progress.note();
    if (peers.isFirst() && status.ok())
      status = prune();
    else if (peers.isFirst())
      removeAll(folder).IgnoreError();
    return peers.fromFirst("given it its name", status);
  }
  if (peers.isFirst())
    removeAll(folder).IgnoreError();
  return status;
}

CheckpointResult CheckpointWriter::Implementation::write() {
  Clock::time_point start = Clock::now();
  CheckpointResult result;
  result.step = snapshot.manifest.progress.steps;
  result.path = absl::StrCat(options.folder, "/step-", result.step);
  result.bytes = snapshot.bytes();
  result.copySeconds = copySeconds;
  progress.begin(absl::StrCat("writing the checkpoint of step ", result.step));
  result.status = writeTogether(absl::StrCat(result.path, ".tmp"), result.path);
  progress.begin("");
  result.seconds = secondsSince(start);
  result.begin = start;
  return result;
}
