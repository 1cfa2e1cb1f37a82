//===- ExchangeBuilder.cpp - Plans the messages of an exchange ------------===//

#include "collectives/ExchangeBuilder.h"

#include <utility>

using namespace shardc::rt;

/// Contiguous parts of at least so many bytes are messages of their own, sent
/// from their places. Copying fewer takes less time than a message.
static constexpr int64_t minDirectBytes = 16 << 10;

bool Region::isContiguous() const {
  const std::array<int64_t, 3> packed = packedStrides();
  for (int loop = 0; loop < 3; ++loop)
    if (box.extents[loop] > 1 && strides[loop] != packed[loop])
      return false;
  return true;
}

Place ExchangeBuilder::add(int from, int to, DType dtype, const Region &part,
                           const Place &source, Place into) {
  uint64_t bytes = part.box.numElements() * byteSize(dtype);
  if (bytes == 0 || (own != from && own != to))
    return {};
  bool isDirect =
      part.isContiguous() && static_cast<int64_t>(bytes) >= minDirectBytes;
  bool isReceived = own == to;
  Peer &peer = isReceived ? fromPeers[from] : toPeers[to];
  Place place;
  if (!isReceived) {
    place = source;
  } else if (isDirect && into.base) {
    place = into;
  } else {
    place = {nullptr, 0, part.packedStrides()};
    if (isDirect)
      place.offset = take(bytes);
  }
  if (isDirect) {
    peer.direct.push_back({place, bytes});
    return place;
  }
  if (isReceived) {
    place.bundleOf = from;
    place.offset = peer.bundleBytes;
  }
  peer.bundle.push_back({{dtype, part.box, {place}, {}},
                         part.isContiguous(),
                         bytes,
                         peer.bundleBytes,
                         part.packedStrides()});
  // Elements stay aligned.
  peer.bundleBytes += (bytes + 15) / 16 * 16;
  return place;
}

void ExchangeBuilder::addSignal(int from, int to) {
  if (from == to || (own != from && own != to))
    return;
  Peer &peer = own == to ? fromPeers[from] : toPeers[to];
  if (!std::exchange(peer.hasSignal, true))
    peer.direct.push_back(
        {exchange->signal(own == to ? from : to, own == to), 1});
}

Place ExchangeBuilder::keep(DType dtype, const Box &box, const Place &place) {
  Place copy = reserve(dtype, box);
  kept.push_back({dtype, box, {place}, {copy}});
  return copy;
}

std::shared_ptr<Exchange> ExchangeBuilder::finish() {
  exchange->addUser();
  if (std::exchange(isFinished, true))
    return exchange;
  for (Work &work : kept)
    exchange->addPacking(std::move(work));
  for (size_t peer = 0; peer < toPeers.size(); ++peer) {
    finishSent(peer);
    finishReceived(peer);
  }
  exchange->reserve(used);
  return exchange;
}

void ExchangeBuilder::resolve(std::vector<Work> &works) const {
  for (Work &work : works)
    for (Place &source : work.sources)
      if (source.bundleOf >= 0) {
        source.offset += fromPeers[source.bundleOf].bundlePlace;
        source.bundleOf = -1;
      }
}

/// Bytes of the exchange's memory, aligned.
uint64_t ExchangeBuilder::take(uint64_t bytes) {
  uint64_t place = used;
  used += (bytes + 63) / 64 * 64;
  return place;
}

void ExchangeBuilder::finishSent(int number) {
  Peer &peer = toPeers[number];
  if (peer.bundle.size() == 1 && peer.bundle[0].isContiguous) {
    // As many bytes as the receiver expects of a bundle.
    exchange->add(number, peer.bundle[0].work.sources[0], peer.bundle[0].bytes,
                  /*isReceived=*/false);
  } else if (!peer.bundle.empty()) {
    peer.bundlePlace = take(peer.bundleBytes);
    for (Bundled &part : peer.bundle) {
      part.work.results = {
          {nullptr, peer.bundlePlace + part.offset, part.strides}};
      exchange->addPacking(std::move(part.work));
    }
    exchange->add(number, {nullptr, peer.bundlePlace, {}}, sizeOf(peer),
                  /*isReceived=*/false);
  }
  for (auto &[place, bytes] : peer.direct)
    exchange->add(number, place, bytes, /*isReceived=*/false);
}

void ExchangeBuilder::finishReceived(int number) {
  Peer &peer = fromPeers[number];
  peer.bundlePlace = take(peer.bundleBytes);
  exchange->add(number, {nullptr, peer.bundlePlace, {}}, sizeOf(peer),
                /*isReceived=*/true);
  for (auto &[place, bytes] : peer.direct)
    exchange->add(number, place, bytes, /*isReceived=*/true);
}

/// Of the message of a bundle: without what follows its last part.
uint64_t ExchangeBuilder::sizeOf(const Peer &peer) {
  return peer.bundle.empty()
             ? 0
             : peer.bundle.back().offset + peer.bundle.back().bytes;
}
