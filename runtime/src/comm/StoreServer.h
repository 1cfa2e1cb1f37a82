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

#include <array>
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
  Sign,     ///< Value: what the process does. No reply, but for a failure.
  IdleTime, ///< Number: a rank; key: the track.
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
  using Clock = std::chrono::steady_clock;
  /// What a rank does on a track, and since when it has made no progress.
  struct Doing {
    uint64_t progress = 0;
    std::string activity;
    Clock::time_point since;
  };
  /// A rank, as far as it is known.
  struct Member {
    bool isHere = false, hasLeft = false;
    std::string host;
    std::array<Doing, 2> tracks;
    int waitsFor = -1;
    Clock::time_point lastSign;
    /// Where its signs come from; null: there is no such connection.
    Socket *signs = nullptr;
    bool isTold = false; ///< Of the failure.
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
  /// Whether it is one; `rank` becomes that of the connection.
  bool takeSign(const StoreRequest &request, const std::string &text,
                Socket &socket, int &rank);
  absl::StatusOr<std::string> idleTime(int rank,
                                       const std::string &track) const;
  /// "rank 1 on node3"; more of what is known of it, for errors; and the same
  /// of those that it waits for.
  std::string nameOf(int rank) const;
  std::string describeAlone(int rank) const;
  std::string describe(int rank) const;
  /// The failure that a rank tells.
  absl::Status failureToldBy(const StoreRequest &request,
                             const std::string &message);
  /// Records the first failure, as `rank` reported it; negative: found here.
  void noteFailure(int rank, const absl::Status &error);
  /// Sends the failure to those who do not know it. The mutex is held.
  void tellFailure();
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
