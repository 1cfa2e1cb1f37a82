//===- CublasLtStatus.h - Codes of cuBLASLt as a Status ---------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CUBLASLTSTATUS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CUBLASLTSTATUS_H

#include "backends/cuda/CublasLt.h"

#include "absl/strings/str_cat.h"

namespace shardc::rt::cuda {

/// `what` names the attempt. ResourceExhausted: no memory for the library.
/// Unavailable: the GPU does not support it.
inline absl::Status toStatus(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return absl::OkStatus();
  auto name = [&]() -> absl::string_view {
    switch (status) {
    case 1:
      return "not initialised";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "out of memory";
    case 7:
      return "invalid value";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "the GPU lacks a feature";
    case 11:
      return "mapping failed";
    case 13:
      return "execution failed";
    case 14:
      return "internal error";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
    default:
      return "unknown error";
    }
  };
  std::string message =
      absl::StrCat("cuBLASLt: ", what, ": ", name(), " (", status, ")");
  switch (status) {
  case CUBLAS_STATUS_ALLOC_FAILED:
    return absl::ResourceExhaustedError(message);
  case CUBLAS_STATUS_ARCH_MISMATCH:
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return absl::UnavailableError(message);
  default:
    return absl::InternalError(message);
  }
}

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CUBLASLTSTATUS_H
