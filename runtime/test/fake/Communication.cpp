//===- Communication.cpp - Collectives of the fake ------------------------===//

#include "Communication.h"

#include <algorithm>
#include <cstring>
#include <mutex>

using namespace shardc::rt::test;

uint64_t shardc::rt::test::widthOf(int type) {
  switch (type) {
  case ncclUint8:
    return 1;
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclFloat32:
    return 4;
  default:
    return 8;
  }
}

const char *shardc::rt::test::nameOf(int type) {
  switch (type) {
  case ncclUint8:
    return "bool";
  case ncclBfloat16:
    return "bf16";
  case ncclInt32:
    return "i32";
  case ncclFloat32:
    return "f32";
  case ncclInt64:
    return "i64";
  default:
    return "f64";
  }
}

static std::mutex stuckMutex;
static std::set<const Communication *> stuck;

void shardc::rt::test::setStuck(const Communication *communication,
                                bool isStuck) {
  std::lock_guard<std::mutex> lock(stuckMutex);
  if (isStuck)
    stuck.insert(communication);
  else
    stuck.erase(communication);
}

bool shardc::rt::test::isStuck() {
  std::lock_guard<std::mutex> lock(stuckMutex);
  return !stuck.empty();
}

std::string shardc::rt::test::numbered(const char *what, uint64_t a, int b) {
  return std::string(what) + "." + std::to_string(a) + "." + std::to_string(b);
}

bool Communication::fail(ncclResult_t result) {
  error = result;
  if (!isAborted)
    setStuck(this, true);
  return false;
}

bool Communication::note(Arrival arrival) {
  return arrival == Arrival::Here ||
         fail(arrival == Arrival::Gone ? ncclRemoteError : ncclSuccess);
}

/// Of the next one between two ranks.
std::string Communication::nameOfMessage(int from, int to) {
  return numbered("message", messages[{from, to}]++, from) + ".to." +
         std::to_string(to);
}

/// The element type and number of a send, in front of its bytes.
static std::string headerOf(const Operation &operation) {
  return std::to_string(operation.count) + " " + nameOf(operation.type) + "\n";
}

/// The next message, which has to be what the operation expects.
bool Communication::receive(const Operation &operation) {
  std::string name = nameOfMessage(operation.peer, rank), bytes;
  if (!note(exchange->read(name, operation.peer, bytes)))
    return false;
  std::string header = headerOf(operation);
  if (bytes.compare(0, header.size(), header) != 0)
    return fail(ncclInvalidArgument);
  std::memcpy(operation.out, bytes.data() + header.size(),
              bytes.size() - header.size());
  // The sender goes on.
  exchange->remove(name);
  return true;
}

std::string Communication::contribution(const Operation &operation) const {
  uint64_t bytes = operation.count * widthOf(operation.type) *
                   (operation.kind == Operation::ReduceScatter ? size : 1);
  return std::string(static_cast<const char *>(operation.in), bytes);
}

/// Reductions are those of the runtime's own kernels.
void Communication::combine(const Operation &operation,
                            const std::vector<std::string> &all) const {
  uint64_t bytes = operation.count * widthOf(operation.type);
  char *out = static_cast<char *>(operation.out);
  if (operation.kind == Operation::AllGather) {
    for (int rank = 0; rank < size; ++rank)
      std::memcpy(out + rank * bytes, all[rank].data(), bytes);
    return;
  }
  const uint64_t start =
      operation.kind == Operation::ReduceScatter ? rank * bytes : 0;
  std::vector<const void *> in;
  for (const std::string &of : all)
    in.push_back(of.data() + start);
  findReduction(nameOf(operation.type),
                operation.reduction == ncclSum)(in, {out}, bytes);
}

/// A group: all of it begins before any of it ends, and it ends when the
/// receivers have what this rank sends.
void Communication::run(const std::vector<Operation> &operations) {
  if (isAborted)
    return;
  const uint64_t begin = collectives;
  uint64_t next = begin;
  std::vector<std::pair<std::string, int>> sent; // With their receivers.
  for (const Operation &operation : operations)
    if (operation.kind == Operation::Send) {
      sent.push_back({nameOfMessage(rank, operation.peer), operation.peer});
      exchange->leave(sent.back().first,
                      headerOf(operation) + contribution(operation));
    } else if (operation.kind != Operation::Receive) {
      exchange->leave(numbered("part", next++, rank), contribution(operation));
    }
  for (const Operation &operation : operations) {
    if (operation.kind == Operation::Send)
      continue;
    if (operation.kind == Operation::Receive) {
      if (!receive(operation))
        return;
      continue;
    }
    std::vector<std::string> all(size);
    for (int other = 0; other < size; ++other)
      if (!note(exchange->read(numbered("part", collectives, other), other,
                               all[other])))
        return;
    for (const std::string &part : all)
      if (part.size() != all[rank].size()) {
        fail(ncclInvalidArgument);
        return;
      }
    combine(operation, all);
    ++collectives;
  }
  for (const auto &[name, receiver] : sent)
    if (!note(exchange->awaitRemoval(name, receiver)))
      return;
  // All ranks have reached this group, so that none reads messages of earlier
  // groups.
  if (next > begin)
    for (; removed < begin; ++removed)
      exchange->remove(numbered("part", removed, rank));
}
