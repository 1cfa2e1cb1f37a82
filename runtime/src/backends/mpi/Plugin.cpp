//===- Plugin.cpp - libshardc-rt-mpi.so -----------------------------------===//
//
// A channel is a tag: MPI keeps messages of one tag between two processes in
// order. Some messages are sent in parts.
//
//===----------------------------------------------------------------------===//

#include "comm/MpiPlugin.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mpi.h>
#include <vector>

namespace {

/// Those of the runtime alone, beside others that a host may have.
MPI_Comm processes = MPI_COMM_NULL;

/// By process whether it is on this host.
std::vector<char> isOnHost;

struct Exchange {
  std::vector<MPI_Request> requests;
  std::vector<int> peers; ///< Of the requests.
};

/// Those that have ended, with the memory that the next ones need.
std::vector<std::unique_ptr<Exchange>> spare;

/// Code of our own: MPI_Init of Open MPI would end the process.
constexpr int noPmix = -1;

/// Whether `srun` started this process without an interface that Open MPI could
/// find the others by.
bool isSlurmWithoutPmix() {
#ifdef OPEN_MPI
  return std::getenv("SLURM_STEP_ID") && !std::getenv("PMIX_NAMESPACE") &&
         !std::getenv("PMI_RANK") && !std::getenv("OMPI_COMM_WORLD_RANK");
#else
  return false;
#endif
}

/// Fills `isOnHost`.
int findHost(int size) {
  isOnHost.assign(size, false);
  MPI_Comm host = MPI_COMM_NULL;
  int code = MPI_Comm_split_type(processes, MPI_COMM_TYPE_SHARED, /*key=*/0,
                                 MPI_INFO_NULL, &host);
  if (code != MPI_SUCCESS)
    return code;
  MPI_Group all = MPI_GROUP_NULL, here = MPI_GROUP_NULL;
  MPI_Comm_group(processes, &all);
  MPI_Comm_group(host, &here);
  int count = 0;
  MPI_Group_size(here, &count);
  for (int i = 0; i < count; ++i) {
    int rank = 0;
    MPI_Group_translate_ranks(here, 1, &i, all, &rank);
    isOnHost[rank] = true;
  }
  MPI_Group_free(&all);
  MPI_Group_free(&here);
  return MPI_Comm_free(&host);
}

int initialize(int32_t *rank, int32_t *size) {
  int isInitialized = 0, code = MPI_Initialized(&isInitialized);
  if (code == MPI_SUCCESS && !isInitialized && isSlurmWithoutPmix())
    return noPmix;
  int provided = 0;
  // Workers take turns in calling.
  if (code == MPI_SUCCESS && !isInitialized)
    code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_dup(MPI_COMM_WORLD, &processes);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_set_errhandler(processes, MPI_ERRORS_RETURN);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_rank(processes, rank);
  if (code == MPI_SUCCESS)
    code = MPI_Comm_size(processes, size);
  return code == MPI_SUCCESS ? findHost(*size) : code;
}

/// The number of elements of a message is an int.
constexpr uint64_t maxBytes = uint64_t(1) << 30;
/// In the memory of a host a message of Open MPI with its header is sent
/// without asking the receiver if it has at most 4 KiB. Up to so many bytes
/// some of these together take less time than one that asks.
constexpr uint64_t maxEagerBytes = 4096 - 128, maxBytesInParts = 32 << 10;

/// The most bytes of a part of a message. Sender and receiver have the same.
uint64_t partBytes(const ShardcMpiMessage &message) {
  return isOnHost[message.peer] && message.bytes <= maxBytesInParts
             ? maxEagerBytes
             : maxBytes;
}

int start(const ShardcMpiMessage *messages, int64_t count, uint32_t channel,
          void **exchange) {
  int tag = static_cast<int>(channel);
  if (spare.empty())
    spare.push_back(std::make_unique<Exchange>());
  Exchange *begun = spare.back().release();
  spare.pop_back();
  *exchange = begun;
  // Receives first: what comes then has its place.
  for (bool receives : {true, false})
    for (int64_t i = 0; i < count; ++i) {
      const ShardcMpiMessage &message = messages[i];
      if ((message.isReceived != 0) != receives)
        continue;
      const uint64_t most = partBytes(message);
      for (uint64_t at = 0; at < message.bytes; at += most) {
        int bytes = static_cast<int>(std::min(most, message.bytes - at));
        char *data = static_cast<char *>(message.data) + at;
        MPI_Request &request = begun->requests.emplace_back();
        begun->peers.push_back(message.peer);
        int code = receives ? MPI_Irecv(data, bytes, MPI_BYTE, message.peer,
                                        tag, processes, &request)
                            : MPI_Isend(data, bytes, MPI_BYTE, message.peer,
                                        tag, processes, &request);
        if (code != MPI_SUCCESS)
          return code;
      }
    }
  return MPI_SUCCESS;
}

int test(void *exchange, int32_t *isDone, int32_t *waitsFor) {
  auto *begun = static_cast<Exchange *>(exchange);
  int done = 0;
  int code = MPI_Testall(static_cast<int>(begun->requests.size()),
                         begun->requests.data(), &done, MPI_STATUSES_IGNORE);
  *isDone = done;
  if (code != MPI_SUCCESS)
    return code;
  if (done) {
    begun->requests.clear();
    begun->peers.clear();
    spare.emplace_back(begun);
    return code;
  }
  for (size_t i = 0; waitsFor && i < begun->requests.size(); ++i) {
    int isOver = 0;
    code =
        MPI_Request_get_status(begun->requests[i], &isOver, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || !isOver) {
      *waitsFor = begun->peers[i];
      break;
    }
  }
  return code;
}

/// MPI moves messages in the calls that ask about some. No message of the
/// runtime is one that nobody has asked for.
int progress() {
  int isThere = 0;
  return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, processes, &isThere,
                    MPI_STATUS_IGNORE);
}

int32_t isOnOneHost() {
  return std::find(isOnHost.begin(), isOnHost.end(), false) == isOnHost.end();
}

int finalize() {
  int code = MPI_Comm_free(&processes);
  return code == MPI_SUCCESS ? MPI_Finalize() : code;
}

void describe(int code, char *text, uint64_t bytes) {
  if (code == noPmix) {
    std::snprintf(text, bytes,
                  "srun started this process without PMIx, which Open MPI "
                  "needs to find the others: expected srun --mpi=pmix");
    return;
  }
  char full[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  if (MPI_Error_string(code, full, &length) != MPI_SUCCESS)
    length = std::snprintf(full, sizeof(full), "error %d of MPI", code);
  std::snprintf(text, bytes, "%.*s", length, full);
}

constexpr ShardcMpiFunctions functions{
    shardcMpiVersion, initialize,  start,    test,
    progress,         isOnOneHost, finalize, describe};

} // namespace

extern "C" __attribute__((visibility("default"))) const ShardcMpiFunctions *
shardc_rt_mpi() {
  return &functions;
}
