//===- Exchange.cpp - The messages of a collective ------------------------===//

#include "collectives/Exchange.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <utility>

using namespace shardc::rt;

absl::StatusOr<MessageMemory::Block *> MessageMemory::take(uint64_t bytes) {
  std::unique_ptr<Block> *smallest = nullptr, *largest = nullptr;
  for (std::unique_ptr<Block> &block : blocks) {
    if (block->isTaken)
      continue;
    if (block->bytes >= bytes &&
        (!smallest || block->bytes < (*smallest)->bytes))
      smallest = &block;
    if (!largest || block->bytes > (*largest)->bytes)
      largest = &block;
  }
  if (!smallest) {
    smallest = largest ? largest : &blocks.emplace_back();
    *smallest = std::make_unique<Block>();
    if (!(*smallest)->memory.allocate(bytes))
      return absl::ResourceExhaustedError(absl::StrCat(
          "out of memory: cannot allocate ", bytes, " bytes for messages"));
    (*smallest)->bytes = bytes;
  }
  (*smallest)->isTaken = true;
  return smallest->get();
}

char *MessageMemory::see(const VisiblePlace &place) {
  auto [memory, isNew] = seen.try_emplace({place.device, place.file});
  if (isNew)
    memory->second.map(place);
  char *first = memory->second.get();
  return first ? first + place.offset : nullptr;
}

void Exchange::add(int peer, const Place &place, uint64_t bytes,
                   bool isReceived) {
  if (bytes > 0)
    planned.push_back({peer, place, bytes, isReceived});
}

void Exchange::pack(const Work &work) const {
  int64_t width = byteSize(work.dtype);
  const Box &box = work.box;
  const Place &from = work.sources[0], &to = work.results[0];
  std::array<int64_t, 3> i;
  for (i[0] = 0; i[0] < box.extents[0]; ++i[0])
    for (i[1] = 0; i[1] < box.extents[1]; ++i[1])
      for (i[2] = 0; i[2] < box.extents[2]; ++i[2])
        std::memcpy(at(to) + to.elementOf(i) * width,
                    at(from) + from.elementOf(i) * width, box.run * width);
}

absl::Status Exchange::open() {
  if (reserved == 0 || block)
    return absl::OkStatus();
  absl::StatusOr<MessageMemory::Block *> taken = memory->take(reserved);
  if (!taken.ok())
    return taken.status();
  block = *taken;
  own = block->memory.get();
  return absl::OkStatus();
}

absl::Status Exchange::start() {
  left = users;
  if (absl::Status status = open(); !status.ok()) {
    started = status;
    return status;
  }
  for (const Work &work : packings)
    pack(work);
  messages.clear();
  for (const Planned &message : planned)
    messages.push_back(
        {message.peer, at(message.place), message.bytes, message.isReceived});
  started = transport.start(messages, channel);
  return started.status();
}

absl::Status Exchange::finish() {
  if (left == users)
    finished = started.ok() ? transport.finish(*started) : started.status();
  if (--left == 0)
    if (MessageMemory::Block *taken = std::exchange(block, nullptr))
      MessageMemory::giveBack(*taken);
  return finished;
}
