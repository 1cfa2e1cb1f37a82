//===- ThreadRanks.h - Threads in place of processes ------------*- C++ -*-===//

#ifndef SHARDC_RT_TEST_THREADRANKS_H
#define SHARDC_RT_TEST_THREADRANKS_H

#include "collectives/Collectives.h"
#include "comm/Transport.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace shardc::rt::test {

/// Letters between threads that are ranks.
struct Mail {
  std::mutex mutex;
  std::condition_variable arrived;
  /// By sender, receiver and channel.
  std::map<std::tuple<int, int, uint32_t>, std::deque<std::string>> letters;
};

/// A rank. Counts what it does.
class ThreadTransport : public Transport {
public:
  ThreadTransport(int rank, int size, Mail &mail)
      : Transport(rank, size), mail(mail) {}

  bool areOnOneHost = false;
  int numSent = 0, numReceived = 0, inFlight = 0, numProgressed = 0;
  uint64_t bytesSent = 0;
  absl::Status failure; ///< Of messages from now on, all of which arrive.

  bool isOnOneHost() const override { return areOnOneHost; }

private:
  absl::StatusOr<Exchange> begin(absl::Span<const Message> messages,
                                 uint32_t channel) override {
    std::lock_guard<std::mutex> lock(mail.mutex);
    auto *begun = new Begun{channel, {}};
    for (const Message &message : messages) {
      ++(message.isReceived ? numReceived : numSent);
      if (message.isReceived)
        begun->received.push_back(message);
      else
        mail.letters[{rank(), message.peer, channel}].emplace_back(
            static_cast<const char *>(message.data), message.bytes);
      bytesSent += message.isReceived ? 0 : message.bytes;
    }
    mail.arrived.notify_all();
    ++inFlight;
    return begun;
  }

  absl::Status end(Exchange exchange) override {
    std::unique_ptr<Begun> begun(static_cast<Begun *>(exchange));
    std::unique_lock<std::mutex> lock(mail.mutex);
    for (const Message &message : begun->received) {
      auto &from = mail.letters[{message.peer, rank(), begun->channel}];
      mail.arrived.wait(lock, [&] { return !from.empty(); });
      EXPECT_EQ(from.front().size(), message.bytes);
      from.front().copy(static_cast<char *>(message.data), message.bytes);
      from.pop_front();
    }
    --inFlight;
    return failure;
  }

  void advance() override {
    EXPECT_GT(inFlight, 0);
    ++numProgressed;
  }

  struct Begun {
    uint32_t channel;
    std::vector<Message> received;
  };

  Mail &mail;
};

/// Runs `body` in threads that are the ranks.
inline void runRanks(int size,
                     const std::function<void(ThreadTransport &)> &body) {
  Mail mail;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      ThreadTransport transport(rank, size, mail);
      body(transport);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &[place, letters] : mail.letters)
    EXPECT_TRUE(letters.empty());
}

inline void runTasks(PreparedCollective *first) {
  for (; first; first = first->next())
    for (int64_t task = 0; task < first->numTasks(); ++task)
      EXPECT_TRUE(first->runTask(task).ok());
}

} // namespace shardc::rt::test

#endif // SHARDC_RT_TEST_THREADRANKS_H
