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

bool Communication::fetch(const std::string &name, int from,
                          std::string &bytes) {
  Arrival arrival = exchange->read(name, from, bytes);
  if (arrival == Arrival::Here)
    return true;
  if (arrival == Arrival::Gone)
    error = ncclRemoteError;
  if (!isAborted)
    setStuck(this, true);
  return false;
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
  KernelBody reduce =
      findKernel(std::string("shardc_reduce_") +
                 (operation.reduction == ncclSum ? "sum_" : "max_") +
                 nameOf(operation.type));
  std::vector<std::vector<char>> arguments;
  auto add = [&](const void *data, size_t size) {
    const char *begin = static_cast<const char *>(data);
    arguments.emplace_back(begin, begin + size);
  };
  const uint64_t elements[] = {operation.count, 1, operation.count,
                               operation.count};
  for (const uint64_t &number : elements)
    add(&number, sizeof(number));
  const uint32_t operands = size, results = 1;
  add(&operands, sizeof(operands));
  add(&results, sizeof(results));
  std::vector<CUdeviceptr> addresses;
  uint64_t start =
      operation.kind == Operation::ReduceScatter ? rank * bytes : 0;
  for (const std::string &of : all)
    addresses.push_back(reinterpret_cast<uintptr_t>(of.data() + start));
  addresses.push_back(reinterpret_cast<uintptr_t>(out));
  add(addresses.data(), addresses.size() * sizeof(CUdeviceptr));
  reduce(arguments, 1);
}

/// A group: all sends of this rank come before its receives.
void Communication::run(const std::vector<Operation> &operations) {
  if (isAborted)
    return;
  const uint64_t begin = collectives;
  uint64_t next = begin;
  for (const Operation &operation : operations)
    if (operation.kind == Operation::Send)
      exchange->leave(
          numbered("message", messages[{rank, operation.peer}]++, rank) +
              ".to." + std::to_string(operation.peer),
          contribution(operation));
    else if (operation.kind != Operation::Receive)
      exchange->leave(numbered("part", next++, rank), contribution(operation));
  for (const Operation &operation : operations) {
    if (operation.kind == Operation::Send)
      continue;
    if (operation.kind == Operation::Receive) {
      std::string bytes,
          name = numbered("message", messages[{operation.peer, rank}]++,
                          operation.peer) +
                 ".to." + std::to_string(rank);
      if (!fetch(name, operation.peer, bytes))
        return;
      exchange->remove(name);
      std::memcpy(
          operation.out, bytes.data(),
          std::min(bytes.size(), operation.count * widthOf(operation.type)));
      continue;
    }
    std::vector<std::string> all(size);
    for (int other = 0; other < size; ++other)
      if (!fetch(numbered("part", collectives, other), other, all[other]))
        return;
    combine(operation, all);
    ++collectives;
  }
  // All ranks have reached this group, so that none reads messages of earlier
  // groups.
  if (next > begin)
    for (; removed < begin; ++removed)
      exchange->remove(numbered("part", removed, rank));
}
