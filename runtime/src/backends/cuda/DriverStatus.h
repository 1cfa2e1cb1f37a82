//===- DriverStatus.h - Codes of the CUDA driver as a Status ----*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_DRIVERSTATUS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_DRIVERSTATUS_H

#include "backends/cuda/Driver.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shardc::rt::cuda {

/// `what` names the attempt; the message adds the driver's name of the code and
/// its explanation. ResourceExhausted: out of memory. Unavailable: no device,
/// or a driver too old. DataLoss: code that does not load.
inline absl::Status toStatus(const Driver &driver, CUresult result,
                             absl::string_view what) {
  if (result == CUDA_SUCCESS)
    return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  if (driver.getErrorName(result, &name) != CUDA_SUCCESS || !name)
    name = "unknown error";
  if (driver.getErrorString(result, &text) != CUDA_SUCCESS || !text)
    text = "no explanation";
  std::string message =
      absl::StrCat("CUDA: ", what, ": ", name, " (", result, "): ", text);
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return absl::ResourceExhaustedError(message);
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_INVALID_DEVICE:
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
    return absl::UnavailableError(message);
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_NOT_FOUND:
    return absl::DataLossError(message);
  default:
    return absl::InternalError(message);
  }
}

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_DRIVERSTATUS_H
