//===- Store.h - Values shared by several processes -------------*- C++ -*-===//
//
// Before processes can communicate through a vendor's library they have to find
// each other: rank 0 keeps values by key, the others set and get them over TCP.
// No data of a training step goes through it.
//
// The store also knows the ranks that have failed or gone. Each process tells
// rank 0 what it is doing, twice in a heartbeat and soon after it begins
// something else, and learns of failures as soon as rank 0 does:
//   - a process that ends, in whatever way, closes its connections;
//   - a host that is lost does not confirm what it is sent within two
//     heartbeats;
//   - a process that is stopped or stuck does not fail by that. The wait of
//     another one for it ends when it has made no progress for the deadline,
//     and the error says what the store knows of it.
//
// There is no authentication: whoever reaches the port can take part. It is
// opened on the loopback interface if rank 0 has an address there.
//
// Thread-safety: threads may share a Store. A call waits for that of another
// thread, but for `checkPeers`, `fail`, `currentWait` and what a process tells
// of itself, which wait for none. `broadcast` and `gatherAll`, which all ranks
// call in the same order, are called by one thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_STORE_H
#define SHARDC_RT_STORE_H

#include "shardc-rt/Ranks.h"

#include "absl/time/time.h"

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace shardc::rt {

class Socket;
class StoreServer;

struct StoreOptions {
  /// Longest wait for another process that makes no progress.
  absl::Duration deadline = absl::Minutes(5);
  /// All others know of a process or host that has gone after two of them.
  absl::Duration heartbeat = absl::Seconds(5);
};

/// What a process does at the same time.
enum class Track : uint8_t { Training, Checkpoint };

/// A process's connection to the store; rank 0 also keeps the store. All errors
/// begin with the rank they are of.
///
/// Aborted: another rank has gone. If one has failed, its error is that of all:
/// its code, its number and host, and its message.
class SHARDC_RT_API Store {
public:
  /// Waits until all ranks are there. DeadlineExceeded names those that are
  /// missing. InvalidArgument: two processes of the same rank, or with
  /// different numbers of processes, or versions of shardc. Unavailable: the
  /// port is taken.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Store>>
  connect(const Ranks &ranks, const StoreOptions &options = {});
  /// Rank 0 waits for the others to leave, some seconds at most.
  ~Store();
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  const Ranks &ranks() const { return own; }
  const StoreOptions &options() const { return limits; }

  /// Keeps `value` until it has been read `reads` times; 0: for good.
  /// FailedPrecondition: there is such a key.
  [[nodiscard]] absl::Status set(const std::string &key,
                                 const std::string &value, uint32_t reads = 0);

  /// The value of `key`, once there is one. DeadlineExceeded names the key.
  [[nodiscard]] absl::StatusOr<std::string> get(const std::string &key,
                                                absl::Duration deadline);

  /// The value that rank 0 passes; those of other ranks are ignored. All ranks
  /// call it in the same order.
  [[nodiscard]] absl::StatusOr<std::string> broadcast(const std::string &what,
                                                      const std::string &value,
                                                      absl::Duration deadline);

  /// The values that the ranks pass, by rank. All ranks call it in the same
  /// order. DeadlineExceeded names `what` and the ranks that passed none, and
  /// have made no progress for `deadline`.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>>
  gatherAll(const std::string &what, const std::string &mine,
            absl::Duration deadline);

  /// OK as long as no other rank has failed or gone. Asks nobody.
  [[nodiscard]] absl::Status checkPeers() const;

  /// Tells the others that this rank has failed, and why. Only the first of all
  /// such errors is kept.
  void fail(const absl::Status &error);

  /// What this process is doing, "step 12" for example: others are told where
  /// it fails, goes or stays. To begin something is progress.
  void setActivity(std::string activity, Track track = Track::Training);

  /// The activity goes on: those who wait for this process go on waiting.
  void noteProgress(Track track = Track::Training);

  /// This process begins to wait for another one, or goes on with that because
  /// the other one makes progress; negative: the wait has ended. For errors of
  /// others, who may wait for this process meanwhile.
  void setWaitsFor(int rank);

  /// The number of the present wait, and the rank it is for; none: this process
  /// does not wait.
  std::optional<std::pair<uint64_t, int>> currentWait() const;

  /// For how long a rank has made no progress, as far as rank 0 knows;
  /// infinite: nothing is known. Waits for a heartbeat at most.
  [[nodiscard]] absl::Duration idleTime(int rank,
                                        Track track = Track::Training);

  /// What is known of a rank, for errors: its host, its activities, and since
  /// when it has given no sign; if it waits for another one itself, the same of
  /// that. Waits for a heartbeat at most.
  [[nodiscard]] std::string describe(int rank);

private:
  SHARDC_RT_PRIVATE Store(const Ranks &ranks, const StoreOptions &options);

  enum class Operation : uint8_t;
  SHARDC_RT_PRIVATE absl::StatusOr<std::string>
  request(Operation operation, const std::string &key, const std::string &value,
          uint32_t number, absl::Duration deadline);
  SHARDC_RT_PRIVATE absl::StatusOr<std::string>
  getFrom(int rank, const std::string &key, absl::Time end,
          absl::Duration deadline);
  SHARDC_RT_PRIVATE absl::Status annotate(const absl::Status &status) const;
  /// Rank 0 as the store, for errors.
  SHARDC_RT_PRIVATE std::string keeper() const;
  /// Opens the connection of the heartbeat, and starts its threads.
  SHARDC_RT_PRIVATE absl::Status startHeartbeat(absl::Time end);
  SHARDC_RT_PRIVATE void sendSigns();
  SHARDC_RT_PRIVATE void receiveFailure();

  const Ranks own;
  const StoreOptions limits;
  std::unique_ptr<StoreServer> server;
  std::mutex requests;            ///< Of the socket.
  std::unique_ptr<Socket> socket; ///< Null: the store is lost.
  std::string lossOfStore;        ///< Why.
  std::unique_ptr<Socket> heartbeatSocket;
  std::string hostOfKeeper;
  /// Values given to all so far.
  uint64_t exchanges = 0;
  std::thread sender, receiver; ///< Of the heartbeat.
  mutable std::mutex mutex;     ///< Of all below.
  std::condition_variable changed;
  absl::Status failureOfPeer;
  /// What is told of a track.
  struct Sign {
    uint64_t progress = 0; ///< Greater each time.
    std::string activity;
  };
  std::array<Sign, 2> signs; ///< By track.
  int waitsFor = -1;
  uint64_t waits = 0; ///< So far.
  /// The sender has something new to send, and sleeps until there is; it ends.
  bool isNew = false, isAsleep = false, isLeaving = false;
  friend class StoreServer;
};

} // namespace shardc::rt

#endif // SHARDC_RT_STORE_H
