//===- Nccl.h - Our subset of NCCL ------------------------------*- C++ -*-===//
//
// Types, constants and signatures of libnccl as NVIDIA's "NCCL API" reference
// documents them, so that no header of the vendor is needed. Communicators do
// not block: calls return before they are done and are polled later.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_NCCL_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_NCCL_H

#include "backends/cuda/Driver.h"

#include <climits>
#include <cstddef>

namespace shardc::rt::cuda {

using ncclResult_t = int;
using ncclComm_t = struct ncclComm *;

inline constexpr ncclResult_t ncclSuccess = 0;
inline constexpr ncclResult_t ncclUnhandledCudaError = 1;
inline constexpr ncclResult_t ncclSystemError = 2;
inline constexpr ncclResult_t ncclInvalidArgument = 4;
inline constexpr ncclResult_t ncclInvalidUsage = 5;
inline constexpr ncclResult_t ncclRemoteError = 6;
inline constexpr ncclResult_t ncclInProgress = 7;

// ncclDataType_t.
inline constexpr int ncclUint8 = 1;
inline constexpr int ncclInt32 = 2;
inline constexpr int ncclInt64 = 4;
inline constexpr int ncclFloat32 = 7;
inline constexpr int ncclFloat64 = 8;
inline constexpr int ncclBfloat16 = 9;
// ncclRedOp_t.
inline constexpr int ncclSum = 0;
inline constexpr int ncclMax = 2;

struct ncclUniqueId {
  char internal[128];
};

/// The layout of NCCL 2.18, which later versions read as well, by its size and
/// version. Only the field for non-blocking calls is set.
struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef;
  unsigned version = 21801;
  int blocking = 0;
  int cgaClusterSize = INT_MIN;
  int minCTAs = INT_MIN;
  int maxCTAs = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN;
};

/// The first version whose communicators can be split.
inline constexpr int leastNcclVersion = 21800;

/// The functions of an open libnccl. Immutable.
class Nccl {
public:
  /// Opens `path`, or libnccl.so.2 if it is empty. Unavailable: there is none,
  /// or it is older than 2.18.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Nccl>>
  open(const std::string &path);

  ncclResult_t (*getVersion)(int *version);
  ncclResult_t (*getUniqueId)(ncclUniqueId *id);
  ncclResult_t (*commInitRankConfig)(ncclComm_t *comm, int size,
                                     ncclUniqueId id, int rank,
                                     ncclConfig_t *config);
  ncclResult_t (*commSplit)(ncclComm_t comm, int color, int key,
                            ncclComm_t *part, ncclConfig_t *config);
  ncclResult_t (*commFinalize)(ncclComm_t comm);
  ncclResult_t (*commDestroy)(ncclComm_t comm);
  ncclResult_t (*commAbort)(ncclComm_t comm);
  ncclResult_t (*commGetAsyncError)(ncclComm_t comm, ncclResult_t *error);
  const char *(*getErrorString)(ncclResult_t result);
  const char *(*getLastError)(ncclComm_t comm);
  ncclResult_t (*groupStart)();
  ncclResult_t (*groupEnd)();
  ncclResult_t (*allReduce)(const void *in, void *out, size_t count, int type,
                            int operation, ncclComm_t comm, CUstream stream);
  ncclResult_t (*allGather)(const void *in, void *out, size_t count, int type,
                            ncclComm_t comm, CUstream stream);
  ncclResult_t (*reduceScatter)(const void *in, void *out, size_t count,
                                int type, int operation, ncclComm_t comm,
                                CUstream stream);
  ncclResult_t (*send)(const void *in, size_t count, int type, int peer,
                       ncclComm_t comm, CUstream stream);
  ncclResult_t (*recv)(void *out, size_t count, int type, int peer,
                       ncclComm_t comm, CUstream stream);

private:
  explicit Nccl(SharedLibrary library) : library(std::move(library)) {}

  SharedLibrary library;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_NCCL_H
