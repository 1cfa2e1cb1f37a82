//===- Transport.h - Messages between processes -----------------*- C++ -*-===//
//
// The processes that run a plan together send each other bytes. Messages have a
// channel, and on it no name: the first that A sends to B is the first that B
// receives from A. On each channel all processes start the same exchanges in
// the same order. Channel 0 is that of exchanges that are finished at once;
// each message of a pipeline and each collective has one of its own, so that
// many are in flight, and may be finished in another order than they were
// started.
//
// Messages may move only while a call of the transport runs, as those of MPI
// do: `progress` moves those in flight while the process computes.
//
// Thread-safety: one call at a time, from any thread. After an error all calls
// return it, since the messages of the processes no longer match.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COMM_TRANSPORT_H
#define SHARDC_RT_SRC_COMM_TRANSPORT_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardc::rt {

/// The channel of a message of a pipeline, by its number.
constexpr uint32_t channelOfMessage(uint32_t message) {
  return 2 * message + 1;
}
/// A channel for collectives, by the number of those taken before.
constexpr uint32_t channelOfCollective(uint32_t number) {
  return 2 * number + 2;
}

class Transport {
public:
  Transport(int rank, int size) : ownRank(rank), numRanks(size) {}
  virtual ~Transport() = default;

  int rank() const { return ownRank; }
  int size() const { return numRanks; }
  /// Whether all processes are on one host, and may see each other's memory.
  virtual bool isOnOneHost() const { return false; }

  /// Bytes to or from another process. A receiver expects as many as are sent.
  struct Message {
    int peer;
    void *data;
    uint64_t bytes;
    bool isReceived;
  };

  /// Messages that have been started; null: none are left.
  using Exchange = void *;

  /// Begins to send and receive on a channel. Until the exchange is finished
  /// nobody writes what is sent, or touches what is received.
  [[nodiscard]] absl::StatusOr<Exchange>
  start(absl::Span<const Message> messages, uint32_t channel);
  /// Returns when all messages have been sent or received. Aborted: another
  /// process failed or has gone. DeadlineExceeded: a message did not come in
  /// time; names the processes that are missing.
  [[nodiscard]] absl::Status finish(Exchange exchange);

  /// Whether exchanges have been started and not finished.
  bool isInFlight() const { return numInFlight > 0; }
  /// Moves the messages of these as far as they go without waiting. Errors are
  /// those of the next start or finish.
  void progress() {
    if (isInFlight())
      advance();
  }

  /// Both, on channel 0.
  [[nodiscard]] absl::Status exchange(absl::Span<const Message> messages);

  /// The bytes that the processes pass, by rank.
  [[nodiscard]] absl::StatusOr<std::vector<std::string>>
  gatherAll(const std::string &mine);

private:
  /// `start`, `finish` and `progress` of an implementation.
  virtual absl::StatusOr<Exchange> begin(absl::Span<const Message> messages,
                                         uint32_t channel) = 0;
  virtual absl::Status end(Exchange exchange) = 0;
  virtual void advance() = 0;

  const int ownRank, numRanks;
  int numInFlight = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COMM_TRANSPORT_H
