//===- WriterPeers.h - Writers of one checkpoint ----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_WRITERPEERS_H
#define SHARDC_RT_SRC_CHECKPOINT_WRITERPEERS_H

#include "base/Mesh.h"
#include "checkpoint/WriteProgress.h"
#include "shardc-rt/Store.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// The processes that write checkpoints together, in the background: they
/// exchange values through a store while the main thread uses it for other
/// ones. Rank 0 coordinates them. All make the same calls in the same order.
///
/// Errors: Aborted, another process failed or has gone; DeadlineExceeded names
/// those that have not answered.
///
/// Thread-safety: one call at a time.
class WriterPeers {
public:
  /// `store` is borrowed; null: there is one process. `progress` outlives it:
  /// the progress of a process that is waited for is that of the one that
  /// waits.
  WriterPeers(Store *store, absl::Duration deadline, WriteProgress &progress)
      : store(store), deadline(deadline), progress(progress) {}

  /// Gives their values the name that rank 0 passes, which no others have; by
  /// the main thread, before all other calls.
  [[nodiscard]] absl::Status begin(const std::string &ownName);

  /// Finds out whether all of them have the same pages of the files in a
  /// folder, as those on one host have; by the main thread.
  [[nodiscard]] absl::Status compareFileSystems(const std::string &folder);

  /// Whether they have.
  bool sharePages() const { return haveSamePages; }

  /// The name that they agreed on.
  const std::string &agreedName() const { return name; }

  int rank() const { return store ? store->ranks().rank : 0; }
  int size() const { return store ? store->ranks().size : 1; }
  bool isFirst() const { return rank() == 0; }
  /// The devices of a process.
  DeviceRange devicesOf(int rank, int64_t numDevices) const {
    return devicesOfProcess(numDevices, rank, size());
  }

  /// The status that rank 0 passes; others pass none. They wait for it somewhat
  /// longer than rank 0 for them, who knows better which one is missing.
  [[nodiscard]] absl::Status fromFirst(const char *what,
                                       const absl::Status &status);

  /// What the processes pass, by rank, on rank 0; on others only its own. The
  /// error of a process is that of the call, on rank 0.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>>
  toFirst(const char *what, const absl::StatusOr<std::string> &mine);

private:
  std::string keyOf(const char *what, int rank) const;
  /// What `rank` sets: waits until it has made no progress for `patience`.
  absl::StatusOr<std::string> wait(int rank, const std::string &key,
                                   absl::Duration patience);

  Store *store;
  absl::Duration deadline;
  WriteProgress &progress;
  std::string name;
  bool haveSamePages = false;
  uint64_t exchanges = 0;
};

/// A status as text, for other processes.
std::string formatStatus(const absl::Status &status);
/// Internal: not the text of a status.
absl::Status parseStatus(absl::string_view text);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_WRITERPEERS_H
