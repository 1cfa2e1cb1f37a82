//===- Store.h - Values shared by several processes -------------*- C++ -*-===//
//
// Before processes can communicate through a vendor's library they have to find
// each other: rank 0 keeps values by key, the others set and get them over TCP.
// The store also knows the ranks that have failed or gone, and answers
// questions about them. No data of a training step goes through it.
//
// There is no authentication: whoever reaches the port can take part. It is
// opened on the loopback interface if rank 0 has an address there.
//
// Thread-safety: threads may share a Store. A call waits for that of another
// thread. `broadcast` and `gatherAll`, which all ranks call in the same order,
// are called by one thread.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_STORE_H
#define SHARDC_RT_STORE_H

#include "shardc-rt/Ranks.h"

#include "absl/time/time.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace shardc::rt {

class Socket;
class StoreServer;

/// A process's connection to the store; rank 0 also keeps the store. All errors
/// begin with the rank they are of.
///
/// Aborted: another rank has failed or gone, with its number and its message.
class SHARDC_RT_API Store {
public:
  /// Waits until all ranks are there. DeadlineExceeded names those that are
  /// missing. InvalidArgument: two processes of the same rank, or with
  /// different numbers of processes. Unavailable: the port is taken.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Store>>
  connect(const Ranks &ranks, absl::Duration deadline);
  /// Rank 0 waits for the others to leave, some seconds at most.
  ~Store();
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  const Ranks &ranks() const { return own; }

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
  /// order. DeadlineExceeded names `what` and the ranks that passed none.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>>
  gatherAll(const std::string &what, const std::string &mine,
            absl::Duration deadline);

  /// OK as long as no other rank has failed or gone.
  [[nodiscard]] absl::Status checkPeers();

  /// Tells the others that this rank has failed. Only the first of all such
  /// messages is kept.
  void fail(absl::string_view message);

private:
  SHARDC_RT_PRIVATE explicit Store(const Ranks &ranks);

  enum class Operation : uint8_t;
  SHARDC_RT_PRIVATE absl::StatusOr<std::string>
  request(Operation operation, const std::string &key, const std::string &value,
          uint32_t number, absl::Duration deadline);
  SHARDC_RT_PRIVATE absl::Status annotate(const absl::Status &status) const;

  const Ranks own;
  std::unique_ptr<StoreServer> server;
  std::mutex mutex;               ///< Of the socket.
  std::unique_ptr<Socket> socket; ///< Null: the store has gone.
  /// Values given to all so far.
  uint64_t exchanges = 0;
  friend class StoreServer;
};

} // namespace shardc::rt

#endif // SHARDC_RT_STORE_H
