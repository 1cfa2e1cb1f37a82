//===- ExchangeBuilder.h - Plans the messages of an exchange ----*- C++ -*-===//
//
// Collects the parts of tensors that processes send each other. Small parts for
// one process travel in one message; a large one that is contiguous is sent
// from its place.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_EXCHANGEBUILDER_H
#define SHARDC_RT_SRC_COLLECTIVES_EXCHANGEBUILDER_H

#include "collectives/Exchange.h"

namespace shardc::rt {

/// A part of a tensor: the box, with its first element and strides in there.
struct Region {
  Box box;
  int64_t first = 0;
  std::array<int64_t, 3> strides = {};

  /// A range of elements.
  static Region ofRange(int64_t begin, int64_t count) {
    return {{{1, 1, 1}, count}, begin, {}};
  }

  /// The loops as they are when the box alone is stored.
  std::array<int64_t, 3> packedStrides() const {
    return {box.extents[1] * box.extents[2] * box.run, box.extents[2] * box.run,
            box.run};
  }
  bool isContiguous() const;
};

/// All processes add the same messages, of which each keeps its own.
class ExchangeBuilder {
public:
  ExchangeBuilder(std::shared_ptr<MessageMemory> memory, Transport &transport,
                  uint32_t channel)
      : exchange(
            std::make_shared<Exchange>(std::move(memory), transport, channel)),
        own(transport.rank()), toPeers(transport.size()),
        fromPeers(transport.size()) {}

  /// Process `to` gets `part` of a tensor, which process `from` has at
  /// `source`. Returns where `to` has it, stored alone: at `into` if it has a
  /// base and the part is a message of its own.
  Place add(int from, int to, DType dtype, const Region &part,
            const Place &source, Place into = {});

  /// Process `to` learns that `from` has come so far; once, however often it is
  /// added.
  void addSignal(int from, int to);

  /// Copies a part of a tensor that lies in this process before it is
  /// overwritten; returns where.
  Place keep(DType dtype, const Box &box, const Place &place);

  /// Memory of the exchange for a part that is computed before its start.
  Place reserve(DType dtype, const Box &box) {
    return {nullptr, take(box.numElements() * byteSize(dtype)),
            Region{box}.packedStrides()};
  }

  /// The exchange, for one more user; nothing is added behind.
  std::shared_ptr<Exchange> finish();

  /// Once the exchange is finished, its received parts have their places.
  void resolve(std::vector<Work> &works) const;

private:
  /// A part that travels with others in one message.
  struct Bundled {
    Work work; ///< Copies it into the message, once that has its place.
    bool isContiguous;
    uint64_t bytes, offset;
    std::array<int64_t, 3> strides;
  };
  /// What goes to another process, or comes from it.
  struct Peer {
    std::vector<std::pair<Place, uint64_t>> direct;
    std::vector<Bundled> bundle;
    uint64_t bundleBytes = 0, bundlePlace = 0;
    bool hasSignal = false;
  };

  uint64_t take(uint64_t bytes);
  void finishSent(int number);
  void finishReceived(int number);
  static uint64_t sizeOf(const Peer &peer);

  std::shared_ptr<Exchange> exchange;
  const int own;
  std::vector<Peer> toPeers, fromPeers;
  std::vector<Work> kept;
  uint64_t used = 0;
  bool isFinished = false;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_EXCHANGEBUILDER_H
