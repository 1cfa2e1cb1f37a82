//===- NcclStatus.h - Codes of NCCL as a Status -----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_NCCLSTATUS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_NCCLSTATUS_H

#include "backends/cuda/Nccl.h"

#include "absl/strings/str_cat.h"

namespace shardc::rt::cuda {

/// `what` names the attempt; the message adds the library's explanation and its
/// last warning. A call in progress is no error. Aborted: another rank failed
/// or has gone.
inline absl::Status toStatus(const Nccl &nccl, ncclResult_t result,
                             absl::string_view what) {
  if (result == ncclSuccess || result == ncclInProgress)
    return absl::OkStatus();
  const char *text = nccl.getErrorString(result);
  const char *last = nccl.getLastError(nullptr);
  std::string message = absl::StrCat(
      "NCCL: ", what, ": ", text ? text : "unknown error", " (", result, ")");
  if (last && *last)
    absl::StrAppend(&message, ": ", last);
  return result == ncclRemoteError ? absl::AbortedError(message)
                                   : absl::InternalError(message);
}

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_NCCLSTATUS_H
