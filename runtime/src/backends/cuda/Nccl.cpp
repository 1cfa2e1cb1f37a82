//===- Nccl.cpp - Our subset of NCCL --------------------------------------===//

#include "backends/cuda/Nccl.h"

#include "backends/cuda/NcclStatus.h"

using namespace shardc::rt::cuda;

absl::StatusOr<std::unique_ptr<Nccl>> Nccl::open(const std::string &path) {
  absl::StatusOr<SharedLibrary> library = SharedLibrary::open(
      "NCCL", {path.empty() ? std::string("libnccl.so.2") : path});
  if (!library.ok())
    return library.status();
  std::unique_ptr<Nccl> nccl(new Nccl(*std::move(library)));
  if (absl::Status s = nccl->library.resolve({
          {"ncclGetVersion", &nccl->getVersion},
          {"ncclGetUniqueId", &nccl->getUniqueId},
          {"ncclCommInitRankConfig", &nccl->commInitRankConfig},
          {"ncclCommSplit", &nccl->commSplit},
          {"ncclCommFinalize", &nccl->commFinalize},
          {"ncclCommDestroy", &nccl->commDestroy},
          {"ncclCommAbort", &nccl->commAbort},
          {"ncclCommGetAsyncError", &nccl->commGetAsyncError},
          {"ncclGetErrorString", &nccl->getErrorString},
          {"ncclGetLastError", &nccl->getLastError},
          {"ncclGroupStart", &nccl->groupStart},
          {"ncclGroupEnd", &nccl->groupEnd},
          {"ncclAllReduce", &nccl->allReduce},
          {"ncclAllGather", &nccl->allGather},
          {"ncclReduceScatter", &nccl->reduceScatter},
          {"ncclSend", &nccl->send},
          {"ncclRecv", &nccl->recv},
      });
      !s.ok())
    return s;
  int version = 0;
  if (absl::Status s =
          toStatus(*nccl, nccl->getVersion(&version), "ncclGetVersion");
      !s.ok())
    return s;
  if (version < leastNcclVersion)
    return absl::UnavailableError(
        absl::StrCat("NCCL ", version, ": at least ", leastNcclVersion,
                     " (2.18) is needed, whose communicators can be split"));
  return nccl;
}
