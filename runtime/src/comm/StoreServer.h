//===- StoreServer.h - Values by key, kept by rank 0 ------------*- C++ -*-===//
//
// One thread accepts connections, and one more serves each connection. A
// message is a fixed header and the bytes that it announces.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COMM_STORESERVER_H
#define SHARDC_RT_SRC_COMM_STORESERVER_H

#include "comm/Socket.h"
#include "shardc-rt/Store.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <thread>

namespace shardc::rt {

enum class Store::Operation : uint8_t {
  Hello,    ///< Key: the version; number: of processes; value: the host.
  Set,      ///< Number: how often it will be read.
  Get,      ///< Number: milliseconds to wait.
  Beat,     ///< Number: milliseconds to wait for a failure; value: activity.
  Describe, ///< Number: a rank.
  Fail,     ///< Number: absl::StatusCode; value: the message.
  Leave
};

/// First in each request. A connection that begins otherwise does not belong to
/// a rank.
inline constexpr uint32_t storeMagic = 0x53685264;

struct StoreRequest {
  uint32_t magic;
  uint32_t operation;
  uint32_t rank;
  uint32_t number;
  uint64_t keyBytes;
  uint64_t valueBytes;
};

struct StoreReply {
  uint32_t code; ///< absl::StatusCode; the bytes are then its message.
  uint32_t reserved;
  uint64_t bytes;
};

class StoreServer {
public:
  /// Listens where `ranks` says. Unavailable: the port is taken.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<StoreServer>>
  start(const Ranks &ranks, const StoreOptions &options);
  /// Waits some seconds for the others to leave, a heartbeat after a failure.
  ~StoreServer();

private:
  StoreServer(const Ranks &ranks, const StoreOptions &options, Socket socket)
      : ranks(ranks), options(options), listener(std::move(socket)),
        members(ranks.size) {}

  struct Entry {
    std::string value;
    uint32_t readsLeft; ///< 0: never goes.
  };
  /// A rank, as far as it is known.
  struct Member {
    bool isHere = false, hasLeft = false;
    std::string host, activity;
    std::chrono::steady_clock::time_point lastSign;
  };
  struct Client {
    Socket socket;
    std::thread thread;
  };

  void acceptAll();
  void serve(Socket &socket);
  /// A request's answer; `rank` becomes that of the connection.
  absl::StatusOr<std::string> answer(const StoreRequest &request,
                                     std::string key, std::string value,
                                     int &rank);
  absl::StatusOr<std::string> hello(const StoreRequest &request,
                                    const std::string &program,
                                    std::string host, int &rank);
  absl::StatusOr<std::string> get(const std::string &key,
                                  absl::Duration patience, int rank);
  absl::StatusOr<std::string> beat(std::string activity,
                                   absl::Duration patience, int rank);
  /// "rank 1 on node3", and more of what is known of it, for errors.
  std::string nameOf(int rank) const;
  std::string describe(int rank) const;
  /// The failure that a rank tells.
  absl::Status failureToldBy(const StoreRequest &request,
                             const std::string &message);
  /// Records the first failure, as `rank` reported it; negative: found here.
  void noteFailure(int rank, const absl::Status &error);
  /// The failure, if there is one that `rank` has not reported itself.
  absl::Status failureOf(int rank) const;

  const Ranks ranks;
  const StoreOptions options;
  Socket listener;
  std::thread acceptor;
  std::mutex mutex; ///< Of all below.
  std::condition_variable changed;
  std::list<Client> clients;
  std::map<std::string, Entry> entries;
  std::vector<Member> members; ///< By rank.
  absl::Status failure;
  int toldBy = -1;
  bool ends = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COMM_STORESERVER_H
