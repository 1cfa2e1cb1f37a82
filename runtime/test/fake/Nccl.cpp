//===- Nccl.cpp - The fake's libnccl --------------------------------------===//
//
// Collectives really happen, between GPUs of this process and of others, in the
// order of ranks.
//
//===----------------------------------------------------------------------===//

#include "NcclCommunicator.h"

#include <utility>

using namespace shardc::rt::test;

namespace {

/// The calls of a group, by communicator and stream.
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
      if (state().isIdle)
        for (Operation &operation : part.operations)
          operation.count = 1;
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
                                   : "an error of the fake";
}

const char *ncclGetLastError(ncclComm_t) { return "said by the fake"; }

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
