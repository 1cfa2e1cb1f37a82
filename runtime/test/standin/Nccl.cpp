//===- Nccl.cpp - The stand-in's libnccl ----------------------------------===//
//
// Collectives really happen, between GPUs of this process and of others, in the
// order of ranks. Communicators do not block: what they are asked for is done
// when they are asked about it for the second time or later. Where a rank has
// died a communicator reports an error, and streams stop until it is aborted;
// where one does not come they stop without an error.
//
//===----------------------------------------------------------------------===//

#include "Communication.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace shardc::rt::test;

namespace shardc::rt::cuda {
struct ncclComm {
  std::shared_ptr<Communication> communication =
      std::make_shared<Communication>();
  CUcontext context = current;
  bool isComplete = false; ///< All have come.
  bool ends = false;
  int polls = 1; ///< Answers that it is still busy.
  struct Split {
    int number;
    ncclComm_t part;
    int color, key;
  };
  std::vector<Split> splits;
  int splitsSoFar = 0;

  ncclResult_t state();

private:
  bool resolve(const Split &split);
};
} // namespace shardc::rt::cuda

/// Whether all have said which part they belong to.
bool ncclComm::resolve(const Split &split) {
  const Exchange &exchange = *communication->exchange;
  std::vector<std::pair<int, int>> members; // Key and rank.
  for (int other = 0; other < communication->size; ++other) {
    std::string name = numbered("split", split.number, other), bytes;
    if (!exchange.has(name))
      return false;
    exchange.read(name, other, bytes);
    int colorAndKey[2];
    std::memcpy(colorAndKey, bytes.data(), sizeof(colorAndKey));
    if (colorAndKey[0] == split.color)
      members.push_back({colorAndKey[1], other});
  }
  std::sort(members.begin(), members.end());
  Communication &part = *split.part->communication;
  part.size = members.size();
  part.rank = std::find(members.begin(), members.end(),
                        std::pair(split.key, communication->rank)) -
              members.begin();
  part.exchange = std::make_unique<Exchange>(
      exchange.directory() + "-" + std::to_string(split.number) + "-" +
          std::to_string(split.color),
      part.rank);
  return true;
}

ncclResult_t ncclComm::state() {
  if (communication->error != ncclSuccess)
    return communication->error;
  if (!communication->exchange)
    return ncclInProgress;
  const Exchange &exchange = *communication->exchange;
  const int size = communication->size;
  if (!isComplete)
    for (int other = 0; other < size; ++other)
      if (!exchange.hasCome(other))
        return ncclInProgress;
  isComplete = true;
  while (!splits.empty()) {
    if (!resolve(splits.back()))
      return ncclInProgress;
    splits.pop_back();
  }
  if (ends)
    for (int other = 0; other < size; ++other)
      if (!exchange.has(numbered("end", 0, other)) && exchange.hasCome(other))
        return ncclInProgress;
  if (polls-- > 0)
    return ncclInProgress;
  // The name is taken by this function.
  StandIn &told = shardc::rt::test::state();
  return told.ncclBusy > 0 ? (--told.ncclBusy, ncclInProgress) : told.ncclError;
}

namespace {

/// What a group has been given, by communicator and stream.
struct Group {
  int depth = 0;
  struct Part {
    ncclComm_t comm;
    CUstream stream;
    std::vector<Operation> operations;
  };
  std::vector<Part> parts;

  void add(ncclComm_t comm, CUstream stream, const Operation &operation) {
    for (Part &part : parts)
      if (part.comm == comm && part.stream == stream)
        return part.operations.push_back(operation);
    parts.push_back({comm, stream, {operation}});
  }

  ncclResult_t issue() {
    std::vector<Part> all = std::move(parts);
    parts.clear();
    for (Part &part : all) {
      part.comm->polls = 1;
      // The library enters the context of the communicator by itself.
      CUcontext entered = std::exchange(current, part.comm->context);
      CUresult added =
          addWork(part.stream, [communication = part.comm->communication,
                                operations = std::move(part.operations)] {
            communication->run(operations);
          });
      current = entered;
      if (added != CUDA_SUCCESS)
        return ncclUnhandledCudaError;
    }
    return all.empty() ? ncclSuccess : ncclInProgress;
  }
};

Group group;

bool isGood(const ncclConfig_t *config) {
  return config && config->size >= sizeof(ncclConfig_t) &&
         config->magic == 0xcafebeef && config->blocking == 0;
}

ncclResult_t giveCommunicator(ncclComm_t *place,
                              std::unique_ptr<ncclComm> made) {
  *place = made.release();
  ++state().live["communicator"];
  return ncclInProgress;
}

ncclResult_t end(ncclComm_t comm, bool fails) {
  comm->communication->isAborted = true;
  setStuck(comm->communication.get(), false);
  comm->communication->exchange.reset();
  delete comm;
  --state().live["communicator"];
  return fails ? ncclSystemError : ncclSuccess;
}

/// `bytes` and `outBytes` of memory that the operation reads and writes.
ncclResult_t give(const char *name, ncclComm_t comm, CUstream stream,
                  const Operation &operation, uint64_t inParts,
                  uint64_t outParts) {
  uint64_t bytes = operation.count * widthOf(operation.type);
  std::string details = std::to_string(operation.count) + " " +
                        nameOf(operation.type) + ", rank " +
                        std::to_string(comm->communication->rank) + " of " +
                        std::to_string(comm->communication->size);
  if (operation.peer >= 0)
    details += ", peer " + std::to_string(operation.peer);
  if (enter(name, details))
    return ncclSystemError;
  if (comm->context != current || !comm->isComplete || comm->ends ||
      operation.peer >= comm->communication->size)
    return ncclInvalidUsage;
  auto has = [&](const void *memory, uint64_t parts) {
    return parts == 0 ||
           isDevice(reinterpret_cast<uintptr_t>(memory), parts * bytes);
  };
  if (operation.count == 0 || !has(operation.in, inParts) ||
      !has(operation.out, outParts))
    return ncclInvalidArgument;
  group.add(comm, stream, operation);
  return group.depth > 0 ? ncclSuccess : group.issue();
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
  *version = state().ncclVersion;
  return enter("ncclGetVersion") ? ncclSystemError : ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited"
                                   : "an error of the stand-in";
}

const char *ncclGetLastError(ncclComm_t) { return "said by the stand-in"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  if (enter("ncclGetUniqueId"))
    return ncclSystemError;
  std::string directory = Exchange::makeDirectory();
  *id = {};
  if (directory.empty() || directory.size() >= sizeof(id->internal))
    return ncclSystemError;
  std::strcpy(id->internal, directory.c_str());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *place, int size,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  if (enter("ncclCommInitRankConfig",
            std::to_string(rank) + " of " + std::to_string(size)))
    return ncclSystemError;
  if (!current || !isGood(config) || rank < 0 || rank >= size)
    return ncclInvalidArgument;
  auto made = std::make_unique<ncclComm>();
  made->communication->rank = rank;
  made->communication->size = size;
  made->communication->exchange = std::make_unique<Exchange>(id.internal, rank);
  return giveCommunicator(place, std::move(made));
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *place, ncclConfig_t *config) {
  if (enter("ncclCommSplit",
            "color " + std::to_string(color) + ", key " + std::to_string(key)))
    return ncclSystemError;
  if (comm->context != current || !comm->isComplete || comm->ends)
    return ncclInvalidUsage;
  if (color < 0 || !isGood(config))
    return ncclInvalidArgument;
  int number = comm->splitsSoFar++;
  const int colorAndKey[] = {color, key};
  comm->communication->exchange->leave(
      numbered("split", number, comm->communication->rank),
      std::string(reinterpret_cast<const char *>(colorAndKey),
                  sizeof(colorAndKey)));
  ncclResult_t result = giveCommunicator(place, std::make_unique<ncclComm>());
  comm->splits.push_back({number, *place, color, key});
  comm->polls = 1;
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (enter("ncclCommGetAsyncError"))
    return ncclSystemError;
  *error = comm->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (enter("ncclCommFinalize"))
    return ncclSystemError;
  comm->communication->exchange->leave(
      numbered("end", 0, comm->communication->rank), "");
  comm->ends = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  bool fails = enter("ncclCommDestroy");
  return comm->ends ? end(comm, fails) : ncclInvalidUsage;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return end(comm, enter("ncclCommAbort"));
}

ncclResult_t ncclGroupStart() {
  if (enter("ncclGroupStart"))
    return ncclSystemError;
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  bool fails = enter("ncclGroupEnd");
  if (group.depth == 0)
    return ncclInvalidUsage;
  if (--group.depth > 0)
    return ncclSuccess;
  if (fails) {
    group.parts.clear();
    return ncclSystemError;
  }
  return group.issue();
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, int type,
                           int reduction, ncclComm_t comm, CUstream stream) {
  return give("ncclAllReduce", comm, stream,
              {Operation::AllReduce, in, out, count, type, reduction, -1}, 1,
              1);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, int type,
                           ncclComm_t comm, CUstream stream) {
  return give("ncclAllGather", comm, stream,
              {Operation::AllGather, in, out, count, type, 0, -1}, 1,
              comm->communication->size);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count,
                               int type, int reduction, ncclComm_t comm,
                               CUstream stream) {
  return give("ncclReduceScatter", comm, stream,
              {Operation::ReduceScatter, in, out, count, type, reduction, -1},
              comm->communication->size, 1);
}

ncclResult_t ncclSend(const void *in, size_t count, int type, int peer,
                      ncclComm_t comm, CUstream stream) {
  return give("ncclSend", comm, stream,
              {Operation::Send, in, nullptr, count, type, 0, peer}, 1, 0);
}

ncclResult_t ncclRecv(void *out, size_t count, int type, int peer,
                      ncclComm_t comm, CUstream stream) {
  return give("ncclRecv", comm, stream,
              {Operation::Receive, nullptr, out, count, type, 0, peer}, 0, 1);
}

} // extern "C"
