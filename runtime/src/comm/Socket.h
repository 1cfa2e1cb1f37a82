//===- Socket.h - A TCP connection with deadlines ---------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_COMM_SOCKET_H
#define SHARDC_RT_SRC_COMM_SOCKET_H

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include <cstdint>
#include <string>

struct addrinfo;

namespace shardc::rt {

/// The name of this machine.
std::string hostName();

/// Owns a socket. Movable. A thread may call `shutDown` while another uses it.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor(descriptor) {}
  Socket(Socket &&other) noexcept;
  Socket &operator=(Socket &&other) noexcept;
  ~Socket();

  /// Tries until somebody listens, and no longer than until the deadline, also
  /// if packets are dropped. The time of the name resolver counts, and cannot
  /// be cut short. DeadlineExceeded has the last error.
  [[nodiscard]] static absl::StatusOr<Socket>
  connect(const std::string &address, int port, absl::Time deadline);

  /// Listens on the loopback interface if `address` is on it, or else on all.
  /// Unavailable: the port is taken.
  [[nodiscard]] static absl::StatusOr<Socket> listen(const std::string &address,
                                                     int port);

  /// A port at which `listen` finds nobody now.
  [[nodiscard]] static absl::StatusOr<int>
  findFreePort(const std::string &address);

  /// The next connection. Unavailable: the socket was shut down.
  [[nodiscard]] absl::StatusOr<Socket> accept();

  /// All of `bytes`. Unavailable: the other side has gone.
  [[nodiscard]] absl::Status send(const std::string &bytes,
                                  absl::Time deadline);
  /// Receives exactly `bytes` bytes, into memory that grows as they arrive.
  [[nodiscard]] absl::StatusOr<std::string> receive(uint64_t bytes,
                                                    absl::Time deadline);

  /// Errors end the connection when the machine at the other side does not
  /// confirm within `patience` what it is sent, also while nothing is sent. A
  /// process that is stopped does not matter: its machine confirms.
  void detectLoss(absl::Duration patience);

  /// Ends the calls that wait for it.
  void shutDown();

private:
  /// Connects to `place`. Unavailable: it is refused.
  absl::Status connectTo(const addrinfo &place, absl::Time deadline);

  /// Waits until the socket can be read, or written.
  absl::Status wait(short events, absl::Time deadline) const;

  int descriptor = -1;
};

/// Numbers in messages: the processes are of one kind of machine, in the order
/// of bytes of x86-64.
template <typename T>
std::string toBytes(T number) {
  return std::string(reinterpret_cast<const char *>(&number), sizeof(number));
}

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COMM_SOCKET_H
