//===- Checkpoint.h - Trainings that go on after an end ---------*- C++ -*-===//
//
// A checkpoint is a folder with all that a training needs to go on: parameters,
// optimizer states and a TrainProgress. Its tensors are in safetensors files,
// as global arrays, so that a plan of any mesh, sharding or pipeline loads it.
// docs/Checkpoints.md describes the format and the guarantees:
//
//   - A checkpoint is there as a whole or not at all, whenever the process or
//     the machine ends. It is flushed to the disk before it gets its name.
//   - Each shard has a checksum. A checkpoint with one damaged bit is refused,
//     and the message names file, tensor and shard.
//
//   DataLoss            a checkpoint is damaged, incomplete, or of another
//                       version
//   ResourceExhausted   the disk is full
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_CHECKPOINT_H
#define SHARDC_RT_CHECKPOINT_H

#include "shardc-rt/Errors.h"
#include "shardc-rt/Executor.h"
#include "shardc-rt/Export.h"
#include "shardc-rt/Store.h"
#include "shardc-rt/Trainer.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shardc::rt {

struct Manifest;
class ReadableFile;

/// How checkpoints are read.
struct ReadCheckpointOptions {
  /// Of several processes that read one together and get the same; borrowed.
  /// Null: there is one.
  Store *store = nullptr;
  /// Longest wait for another process that makes no progress.
  absl::Duration deadline = absl::Minutes(5);
  /// Called again and again, by the thread that reads; may be empty.
  std::function<void()> onProgress = {};
  /// For the latest one: called for each one that was written later and is
  /// damaged; may be empty.
  std::function<void(const absl::Status &)> onDamaged = {};
  /// For the latest one: paths of those that do not count.
  std::vector<std::string> leaveOut = {};
};

/// A checkpoint that is read. Its files stay open, so that it can be read also
/// after its folder has been removed; a file that is cut off in the meantime is
/// DataLoss.
///
/// Thread-safety: threads may share a constant one.
class SHARDC_RT_API Checkpoint {
public:
  /// Opens DIR/step-N. NotFound: there is no such folder. DataLoss: its
  /// manifest or a file is missing, damaged in its header, of another size or
  /// of another checkpoint. The data is not read yet.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Checkpoint>>
  open(const std::string &path);
  ~Checkpoint();
  Checkpoint(const Checkpoint &) = delete;
  Checkpoint &operator=(const Checkpoint &) = delete;

  const std::string &path() const;
  const TrainProgress &progress() const;
  /// The mesh that it was written on, as "data=4,model=2".
  const std::string &mesh() const;
  /// Of the model: a hash of the names, types and global shapes of its
  /// parameters and states.
  const std::string &fingerprint() const;

  /// Computes all checksums. Returns a line for each fault, which names file,
  /// tensor and shard; none if all is well.
  std::vector<std::string> verify() const;

  /// Whether a plan has these parameters and states: InvalidArgument names the
  /// first difference. The mesh may be any.
  [[nodiscard]] absl::Status checkAgainst(const Plan &plan) const;

  /// As `verify`, once for this object; of several processes each computes its
  /// share. DataLoss: the faults, a line each.
  [[nodiscard]] absl::Status
  verifyOnce(const ReadCheckpointOptions &options = {});

  /// Sets all parameters and states of an executor, after `checkAgainst`. Each
  /// device reads its shards alone. Unless `verifyOnce` was called, checksums
  /// are computed of the bytes as they pass; of several processes each computes
  /// those of the shards that it reads as a whole, and its share of those that
  /// none does. DataLoss: the faults, a line each; parameters and states have
  /// no value then.
  [[nodiscard]] absl::Status
  load(Executor &executor, const ReadCheckpointOptions &options = {}) const;

  /// All parameters, as global arrays, after their checksums. DataLoss: the
  /// faults.
  [[nodiscard]] absl::StatusOr<ArrayMap> readParameters() const;

  /// For the runtime itself.
  const Manifest &manifest() const { return *ownManifest; }
  /// The file of a tensor of the manifest, by its number; borrowed.
  SHARDC_RT_PRIVATE const ReadableFile &fileOf(size_t tensor) const;

private:
  struct SHARDC_RT_PRIVATE Files;
  SHARDC_RT_PRIVATE Checkpoint(std::string path,
                               std::unique_ptr<const Manifest> manifest,
                               std::unique_ptr<const Files> files);
  SHARDC_RT_PRIVATE absl::Status
  set(Executor &executor, const ReadCheckpointOptions &options) const;

  std::string ownPath, ownFingerprint;
  std::unique_ptr<const Manifest> ownManifest;
  std::unique_ptr<const Files> files;
  bool isVerified = false;
};

/// A folder DIR/step-N.
struct SHARDC_RT_API CheckpointName {
  std::string path;
  int64_t step = 0;
  /// Its place in the order of writing; negative: the manifest cannot be read.
  int64_t sequence = -1;
  /// That of `Checkpoint`; empty: the manifest cannot be read.
  std::string fingerprint;
  /// Why the manifest cannot be read.
  absl::Status status;
};

/// The checkpoints in a folder, the latest first; those whose manifest cannot
/// be read come in front of the others, by their step. Folders of writes that
/// did not end do not count. NotFound: there is no such folder.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::vector<CheckpointName>>
listCheckpoints(const std::string &folder);

/// The checkpoint that was written last, of those that can be opened; its data
/// is not read yet. NotFound: there is none.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::unique_ptr<Checkpoint>>
findLatestCheckpoint(const std::string &folder,
                     const ReadCheckpointOptions &options = {});

/// The same, of those that pass `verify`.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::unique_ptr<Checkpoint>>
openLatestCheckpoint(const std::string &folder,
                     const ReadCheckpointOptions &options = {});

/// Sets an executor by the checkpoint that was written last, of those that are
/// whole: reads each byte once, where `openLatestCheckpoint` and `load` read it
/// twice. Errors are those of both.
[[nodiscard]] SHARDC_RT_API absl::StatusOr<std::unique_ptr<Checkpoint>>
loadLatestCheckpoint(const std::string &folder, Executor &executor,
                     const ReadCheckpointOptions &options = {});

struct CheckpointOptions {
  /// Holds the checkpoints; made if it is not there.
  std::string folder;
  /// How many are kept, at least 1; the oldest go first. 0: all.
  int64_t keep = 0;
  /// Parameters and states go into several files each where they have more
  /// bytes. A tensor is never cut.
  uint64_t maxFileBytes = uint64_t(4) << 30;
  /// Of all processes that train together, borrowed; null: there is one. All
  /// see the folder, and each writes the shards of its own devices.
  Store *store = nullptr;
  /// Longest wait for the part of another process that makes no progress.
  absl::Duration deadline = absl::Minutes(5);
  /// Called again and again while `save`, `reserve` or `wait` waits for a write
  /// that makes progress, by that thread; may be empty.
  std::function<void()> onProgress = {};
  /// The training goes on from a checkpoint of the folder: those that are there
  /// are its own, and `keep` counts them. Otherwise there must be none.
  bool goesOn = false;
};

/// How writing a checkpoint ended.
struct CheckpointResult {
  int64_t step = 0;
  std::string path;
  absl::Status status;
  uint64_t bytes = 0;     ///< Of parameters and states.
  double copySeconds = 0; ///< For which the training stood still.
  double seconds = 0;     ///< Of writing, in the background, from `begin` on.
  std::chrono::steady_clock::time_point begin;
};

/// Writes checkpoints of a training in the background. A folder has one writer
/// at a time, which locks it; in processes that end the lock goes away. Several
/// processes that train together each have a writer with the same options,
/// which are opened together and save after the same steps; the results are
/// those of all. Aborted, DeadlineExceeded: another one has gone, or has not
/// written its part.
///
/// Thread-safety: one call at a time.
class SHARDC_RT_API CheckpointWriter {
public:
  /// Makes and locks the folder, and removes what writes left behind that did
  /// not end. FailedPrecondition: another writer has it, or it has checkpoints
  /// that the training does not go on from. InvalidArgument: it cannot be
  /// written.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<CheckpointWriter>>
  open(CheckpointOptions options);
  /// Waits for the write in progress.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  /// Allocates the memory for copies of a plan's parameters and states, so that
  /// the first copy takes no longer than the others. ResourceExhausted: there
  /// is not enough. InvalidArgument: a name that safetensors cannot hold.
  /// FailedPrecondition: the folder has a checkpoint of another model.
  [[nodiscard]] absl::Status reserve(const Plan &plan);

  /// Copies parameters and states and returns; a thread writes the copy. First
  /// waits for the write before, if that has not ended. No run is in flight.
  /// Errors are those of reading the executor; those of the write are in its
  /// result. A checkpoint with a parameter or state that is not finite is not
  /// written: its result is OutOfRange.
  [[nodiscard]] absl::Status save(const Executor &executor,
                                  const TrainProgress &progress);

  /// The writes that have ended since the last call.
  std::vector<CheckpointResult> takeResults();

  /// Waits for the write in progress.
  void wait();

private:
  struct SHARDC_RT_PRIVATE Implementation;
  SHARDC_RT_PRIVATE explicit CheckpointWriter(
      std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace shardc::rt

#endif // SHARDC_RT_CHECKPOINT_H
