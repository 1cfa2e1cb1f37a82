//===- Transport.cpp - Messages between processes -------------------------===//

#include "comm/Transport.h"

using namespace shardc::rt;

absl::StatusOr<Transport::Exchange>
Transport::start(absl::Span<const Message> messages, uint32_t channel) {
  absl::StatusOr<Exchange> begun = begin(messages, channel);
  numInFlight += begun.ok() && *begun;
  return begun;
}

absl::Status Transport::finish(Exchange exchange) {
  numInFlight -= exchange != nullptr;
  return end(exchange);
}

absl::Status Transport::exchange(absl::Span<const Message> messages) {
  absl::StatusOr<Exchange> started = start(messages, /*channel=*/0);
  return started.ok() ? finish(*started) : started.status();
}

absl::StatusOr<std::vector<std::string>>
Transport::gatherAll(const std::string &mine) {
  std::vector<uint64_t> sizes(numRanks);
  sizes[ownRank] = mine.size();
  std::vector<Message> messages;
  auto exchangeAll = [&](auto dataOf, auto bytesOf) {
    messages.clear();
    for (int peer = 0; peer < numRanks; ++peer)
      if (peer != ownRank) {
        messages.push_back({peer, dataOf(ownRank), bytesOf(ownRank), false});
        messages.push_back({peer, dataOf(peer), bytesOf(peer), true});
      }
    return exchange(messages);
  };
  if (absl::Status status = exchangeAll([&](int peer) { return &sizes[peer]; },
                                        [](int) { return sizeof(uint64_t); });
      !status.ok())
    return status;
  std::vector<std::string> all(numRanks);
  for (int peer = 0; peer < numRanks; ++peer)
    all[peer].resize(sizes[peer]);
  all[ownRank] = mine;
  absl::Status status = exchangeAll([&](int peer) { return all[peer].data(); },
                                    [&](int peer) { return sizes[peer]; });
  if (!status.ok())
    return status;
  return all;
}
