//===- Context.h - A GPU and its primary context ----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CONTEXT_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CONTEXT_H

#include "backends/cuda/DriverStatus.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace shardc::rt::cuda {

/// Retains the primary context of a GPU, which libraries of the vendor use as
/// well. All handles made in it have to be gone before it; the driver outlives
/// it. Safe to share between threads: each makes it current for itself.
class Context {
public:
  /// Unavailable: no GPU of this number.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Context>>
  create(const Driver &driver, int ordinal);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  const Driver &driver() const { return *api; }
  /// As the vendor calls the GPU.
  const std::string &name() const { return deviceName; }
  /// 90 for sm_90.
  int architecture() const { return arch; }

  /// Makes it the calling thread's.
  [[nodiscard]] absl::Status makeCurrent() const;

  /// A code of the driver as a Status (DriverStatus.h).
  absl::Status check(CUresult result, absl::string_view what) const {
    return toStatus(*api, result, what);
  }

private:
  Context(const Driver &driver, CUdevice device)
      : api(&driver), device(device) {}

  const Driver *api;
  CUdevice device;
  CUcontext context = nullptr;
  std::string deviceName;
  int arch = 0;
};

/// Number of GPUs that the driver shows.
[[nodiscard]] absl::StatusOr<int> countGpus(const Driver &driver);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CONTEXT_H
