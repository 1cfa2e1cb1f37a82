//===- Exchange.h - The messages of a collective ----------------*- C++ -*-===//
//
// An exchange is started once the operands are complete, and finished where
// what it brings is needed; in between it is in flight, beside other exchanges.
// Each has a channel of its own, and memory for what has no other place.
//
// Thread-safety: starts and finishes are made by one thread at a time. Between
// a start and what was done before, all threads have met.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_EXCHANGE_H
#define SHARDC_RT_SRC_COLLECTIVES_EXCHANGE_H

#include "base/Memory.h"
#include "comm/Transport.h"
#include "shardc-rt/DType.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

namespace shardc::rt {

/// Blocks of memory for messages, and memory of other processes that is read in
/// place of messages. A block that was given back serves later exchanges, so
/// that there are as many as exchanges that are in flight together.
class MessageMemory {
public:
  struct Block {
    Memory memory;
    uint64_t bytes = 0;
    bool isTaken = false;
  };

  /// The smallest free block that suffices; else a free one that is made
  /// larger, or a new one. ResourceExhausted.
  [[nodiscard]] absl::StatusOr<Block *> take(uint64_t bytes);
  /// The block keeps its content until a later exchange takes it.
  static void giveBack(Block &block) { block.isTaken = false; }

  /// Where this process sees a byte of another one; null: it may not.
  char *see(const VisiblePlace &place);

private:
  /// By device and number of the file; what could not be mapped is empty.
  std::map<std::pair<uint64_t, uint64_t>, VisibleMemory> seen;
  std::vector<std::unique_ptr<Block>> blocks;
};

/// Three loops around contiguous runs of elements.
struct Box {
  std::array<int64_t, 3> extents;
  int64_t run;

  int64_t numElements() const {
    return extents[0] * extents[1] * extents[2] * run;
  }
};

/// Where a box lies. Distances of the loops are in elements.
struct Place {
  char *base = nullptr; ///< Null: memory of an exchange.
  uint64_t offset = 0;  ///< In bytes.
  std::array<int64_t, 3> strides = {};
  /// The offset is in the message of this process, which has no place yet;
  /// negative: in the memory itself.
  int bundleOf = -1;

  int64_t elementOf(const std::array<int64_t, 3> &index) const {
    return index[0] * strides[0] + index[1] * strides[1] +
           index[2] * strides[2];
  }
};

/// A part of a result, or of a node of a reduction: reduced from its sources,
/// in the order of their tree, or copied from the only one; other results than
/// the first get the same.
struct Work {
  DType dtype;
  Box box;
  std::vector<Place> sources, results;
  /// By source the leaves that it is the reduction of; empty: one each.
  std::vector<int64_t> leaves = {};
};

class Exchange {
public:
  Exchange(std::shared_ptr<MessageMemory> memory, Transport &transport,
           uint32_t channel)
      : memory(std::move(memory)), transport(transport), channel(channel),
        signals(2 * transport.size()) {}

  /// Bytes to or from `peer`.
  void add(int peer, const Place &place, uint64_t bytes, bool isReceived);
  /// A copy that is made before the messages are sent.
  void addPacking(Work work) { packings.push_back(std::move(work)); }
  /// A byte for a message without content to `peer`, or from it.
  Place signal(int peer, bool isReceived) {
    return {&signals[2 * peer + isReceived]};
  }
  /// Memory that it has while it is open.
  void reserve(uint64_t bytes) { reserved = bytes; }
  /// One more finish for each start: of a collective that shares the messages.
  void addUser() { ++users; }

  bool isEmpty() const { return planned.empty() && packings.empty(); }

  /// Takes the memory, for what is computed there before the start. Errors:
  /// ResourceExhausted.
  [[nodiscard]] absl::Status open();
  /// Opens the exchange if that has not been done. Errors: those of
  /// `Transport::start`, ResourceExhausted.
  [[nodiscard]] absl::Status start();
  /// Once for each user: the first one waits. What came is in its places, and
  /// behind the last one stays there until the next start of any exchange of
  /// the same memory. Errors: those of the start and of `Transport::finish`.
  [[nodiscard]] absl::Status finish();

  /// Once it is open.
  char *at(const Place &place) const {
    return (place.base ? place.base : own) + place.offset;
  }

private:
  struct Planned {
    int peer;
    Place place;
    uint64_t bytes;
    bool isReceived;
  };

  void pack(const Work &work) const;

  std::shared_ptr<MessageMemory> memory;
  Transport &transport;
  const uint32_t channel;
  uint64_t reserved = 0;
  int users = 0, left = 0; ///< Who have not finished since the start.
  absl::Status finished;
  std::vector<Work> packings;
  std::vector<Planned> planned;
  std::vector<Transport::Message> messages;
  std::vector<char> signals; ///< By peer, sent and received.
  MessageMemory::Block *block = nullptr;
  char *own = nullptr;
  absl::StatusOr<Transport::Exchange> started = nullptr;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_EXCHANGE_H
