//===- Socket.cpp - A TCP connection with deadlines -----------------------===//

#include "comm/Socket.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

using namespace shardc::rt;

std::string shardc::rt::hostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

Socket::Socket(Socket &&other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)) {}

Socket &Socket::operator=(Socket &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  return *this;
}

Socket::~Socket() {
  if (descriptor >= 0)
    ::close(descriptor);
}

void Socket::shutDown() {
  if (descriptor >= 0)
    ::shutdown(descriptor, SHUT_RDWR);
}

void Socket::detectLoss(absl::Duration patience) {
  auto set = [&](int level, int option, int64_t value) {
    int number = static_cast<int>(std::clamp<int64_t>(value, 1, INT_MAX));
    ::setsockopt(descriptor, level, option, &number, sizeof(number));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  // The first question in an idle connection, and those after it.
  set(IPPROTO_TCP, TCP_KEEPIDLE, absl::ToInt64Seconds(patience / 4));
  set(IPPROTO_TCP, TCP_KEEPINTVL, absl::ToInt64Seconds(patience / 4));
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, absl::ToInt64Milliseconds(patience));
}

static absl::Status systemError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of the name `address`. Unavailable: it has none.
static absl::StatusOr<Addresses> lookUp(const std::string &address, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(),
                              &hints, &found))
    return absl::UnavailableError(
        absl::StrCat("looking up ", address, ": ", gai_strerror(error)));
  return Addresses(found, &freeaddrinfo);
}

/// Whether both ends are this one: TCP connects a socket to itself where nobody
/// listens on a port and the system chooses the same for the socket.
static bool isConnectedToItself(int descriptor) {
  sockaddr_storage own = {}, peer = {};
  socklen_t ownLength = sizeof(own), peerLength = sizeof(peer);
  return ::getsockname(descriptor, reinterpret_cast<sockaddr *>(&own),
                       &ownLength) == 0 &&
         ::getpeername(descriptor, reinterpret_cast<sockaddr *>(&peer),
                       &peerLength) == 0 &&
         ownLength == peerLength && std::memcmp(&own, &peer, ownLength) == 0;
}

absl::Status Socket::connectTo(const addrinfo &place, absl::Time deadline) {
  // The kernel decides how long a blocking attempt lasts: minutes if packets
  // are dropped.
  Socket socket(::socket(place.ai_family,
                         place.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.descriptor < 0)
    return systemError("making a socket");
  if (::connect(socket.descriptor, place.ai_addr, place.ai_addrlen) != 0) {
    if (errno != EINPROGRESS && errno != EINTR)
      return systemError("connecting");
    if (absl::Status s = socket.wait(POLLOUT, deadline); !s.ok())
      return s;
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(socket.descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      errno = error;
      return systemError("connecting");
    }
  }
  if (isConnectedToItself(socket.descriptor))
    return absl::UnavailableError("connecting: nobody listens");
  int one = 1;
  ::setsockopt(socket.descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  *this = std::move(socket);
  return absl::OkStatus();
}

absl::StatusOr<Socket> Socket::connect(const std::string &address, int port,
                                       absl::Time deadline) {
  // Gives each of several addresses its turn.
  constexpr absl::Duration longestAttempt = absl::Seconds(10);
  for (;;) {
    absl::StatusOr<Addresses> found = lookUp(address, port);
    absl::Status failure = found.status();
    if (found.ok())
      for (addrinfo *at = found->get(); at; at = at->ai_next) {
        Socket socket;
        failure = socket.connectTo(
            *at, std::min(deadline, absl::Now() + longestAttempt));
        if (failure.ok())
          return socket;
      }
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError(absl::StrCat("nobody listens at ",
                                                      address, ":", port, " (",
                                                      failure.message(), ")"));
    absl::SleepFor(absl::Milliseconds(50));
  }
}

static bool isLoopback(const sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in *>(address)
                      ->sin_addr.s_addr) >>
            24) == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(
             &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

absl::StatusOr<Socket> Socket::listen(const std::string &address, int port) {
  absl::StatusOr<Addresses> found = lookUp(address, port);
  if (!found.ok())
    return found.status();
  sockaddr_in everywhere = {};
  everywhere.sin_family = AF_INET;
  everywhere.sin_port = htons(port);
  const sockaddr *place = reinterpret_cast<sockaddr *>(&everywhere);
  socklen_t length = sizeof(everywhere);
  if (isLoopback(found->get()->ai_addr)) {
    place = found->get()->ai_addr;
    length = found->get()->ai_addrlen;
  }
  Socket socket(::socket(place->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int one = 1;
  if (socket.descriptor < 0 ||
      ::setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEADDR, &one,
                   sizeof(one)) != 0 ||
      ::bind(socket.descriptor, place, length) != 0 ||
      ::listen(socket.descriptor, SOMAXCONN) != 0)
    return systemError(absl::StrCat("listening on port ", port,
                                    " (MASTER_PORT or SHARDC_PORT choose it)"));
  return socket;
}

absl::StatusOr<int> Socket::findFreePort(const std::string &address) {
  absl::StatusOr<Socket> socket = listen(address, 0);
  if (!socket.ok())
    return socket.status();
  sockaddr_storage place = {};
  socklen_t length = sizeof(place);
  if (::getsockname(socket->descriptor, reinterpret_cast<sockaddr *>(&place),
                    &length) != 0)
    return systemError("finding a port");
  return ntohs(place.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6 &>(place).sin6_port
                   : reinterpret_cast<const sockaddr_in &>(place).sin_port);
}

absl::StatusOr<Socket> Socket::accept() {
  for (;;) {
    int next = ::accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC);
    if (next >= 0) {
      int one = 1;
      ::setsockopt(next, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
      return Socket(next);
    }
    // The listening socket was shut down, or is none.
    if (errno == EINVAL || errno == EBADF || errno == ENOTSOCK)
      return systemError("accepting a connection");
    // Those of the one connection, which has gone, or of descriptors and
    // memory, which others may free: whoever connects waits.
    if (errno != EINTR && errno != ECONNABORTED)
      absl::SleepFor(absl::Milliseconds(20));
  }
}

absl::Status Socket::wait(short events, absl::Time deadline) const {
  for (;;) {
    pollfd request{descriptor, events, 0};
    absl::Duration left = std::clamp(deadline - absl::Now(),
                                     absl::ZeroDuration(), absl::Hours(24));
    int ready = ::poll(&request, 1, absl::ToInt64Milliseconds(left) + 1);
    if (ready > 0)
      return absl::OkStatus();
    if (ready < 0 && errno != EINTR)
      return systemError("waiting for a connection");
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError("no answer");
  }
}

absl::Status Socket::send(const std::string &bytes, absl::Time deadline) {
  for (size_t sent = 0; sent < bytes.size();) {
    if (absl::Status s = wait(POLLOUT, deadline); !s.ok())
      return s;
    ssize_t count = ::send(descriptor, bytes.data() + sent, bytes.size() - sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EINTR && errno != EAGAIN)
      return systemError("the connection is lost");
    sent += std::max<ssize_t>(count, 0);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Socket::receive(uint64_t bytes,
                                            absl::Time deadline) {
  constexpr uint64_t piece = uint64_t(1) << 20;
  std::string received;
  while (received.size() < bytes) {
    if (absl::Status s = wait(POLLIN, deadline); !s.ok())
      return s;
    size_t old = received.size();
    received.resize(old + std::min(piece, bytes - old));
    ssize_t count = ::recv(descriptor, received.data() + old,
                           received.size() - old, MSG_DONTWAIT);
    received.resize(old + std::max<ssize_t>(count, 0));
    if (count == 0)
      return absl::UnavailableError("the connection was closed");
    if (count < 0 && errno != EINTR && errno != EAGAIN)
      return systemError("the connection is lost");
  }
  return received;
}
