//===- SocketTest.cpp - Connections and their deadlines -------------------===//

#include "comm/Socket.h"

#include "absl/time/clock.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace shardc::rt;

/// Listens on a free port of the loopback interface, and accepts no connection.
class Listener {
public:
  explicit Listener(int backlog)
      : descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto *place = reinterpret_cast<sockaddr *>(&address);
    EXPECT_EQ(::bind(descriptor, place, length), 0);
    EXPECT_EQ(::getsockname(descriptor, place, &length), 0);
    EXPECT_EQ(::listen(descriptor, backlog), 0);
  }
  ~Listener() {
    for (int waiting : queue)
      ::close(waiting);
    ::close(descriptor);
  }

  int port() const { return ntohs(address.sin_port); }

  /// Connects until the kernel drops packets to this port; false: it does not
  /// do that here.
  bool fill() {
    for (int i = 0; i < 16; ++i) {
      int next =
          ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      queue.push_back(next);
      (void)::connect(next, reinterpret_cast<sockaddr *>(&address),
                      sizeof(address));
      pollfd connected{next, POLLOUT, 0};
      if (::poll(&connected, 1, /*timeout=*/100) == 0)
        return true;
    }
    return false;
  }

private:
  int descriptor;
  sockaddr_in address = {};
  std::vector<int> queue;
};

TEST(SocketTest, ADeadlineHoldsWherePacketsAreSwallowed) {
  Listener full(/*backlog=*/0);
  if (!full.fill())
    GTEST_SKIP() << "a full queue swallows nothing here";
  absl::Time begin = absl::Now();
  absl::StatusOr<Socket> socket = Socket::connect(
      "127.0.0.1", full.port(), begin + absl::Milliseconds(300));
  EXPECT_EQ(socket.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(socket.status().message(),
            "nobody listens at 127.0.0.1:" + std::to_string(full.port()) +
                " (no answer)");
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(300));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST(SocketTest, ADeadlineHoldsWhereNobodyListens) {
  int port;
  {
    Listener gone(/*backlog=*/0);
    port = gone.port();
  }
  absl::Time begin = absl::Now();
  absl::StatusOr<Socket> socket =
      Socket::connect("127.0.0.1", port, begin + absl::Milliseconds(300));
  EXPECT_EQ(socket.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(socket.status().message(),
            "nobody listens at 127.0.0.1:" + std::to_string(port) +
                " (connecting: Connection refused)");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
}

TEST(SocketTest, ConnectsToWhoListensLater) {
  int port;
  {
    Listener gone(/*backlog=*/0);
    port = gone.port();
  }
  absl::Time deadline = absl::Now() + absl::Seconds(30);
  absl::StatusOr<std::string> heard;
  std::thread server([&] {
    absl::SleepFor(absl::Milliseconds(200));
    absl::StatusOr<Socket> listener = Socket::listen("127.0.0.1", port);
    ASSERT_TRUE(listener.ok()) << listener.status();
    absl::StatusOr<Socket> connection = listener->accept();
    ASSERT_TRUE(connection.ok()) << connection.status();
    heard = connection->receive(5, deadline);
  });
  absl::StatusOr<Socket> socket = Socket::connect("127.0.0.1", port, deadline);
  EXPECT_TRUE(socket.ok()) << socket.status();
  if (socket.ok()) {
    EXPECT_TRUE(socket->send("hello", deadline).ok());
  }
  server.join();
  ASSERT_TRUE(heard.ok()) << heard.status();
  EXPECT_EQ(*heard, "hello");
}
