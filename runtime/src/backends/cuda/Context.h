//===- Context.h - A GPU and its primary context ----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_CONTEXT_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_CONTEXT_H

#include "backends/cuda/DriverStatus.h"

#include "absl/status/statusor.h"

#include <memory>
#include <string>

namespace shardc::rt::cuda {

/// Properties of a GPU, from the driver.
struct GpuDescription {
  CUdevice device;
  std::string name;
  int architecture; ///< 90 for sm_90.
};

/// Unavailable: no GPU of this number. Creates nothing on the GPU.
[[nodiscard]] absl::StatusOr<GpuDescription> describeGpu(const Driver &driver,
                                                         int ordinal);

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
  /// The vendor's name of the GPU.
  const std::string &name() const { return gpu.name; }
  /// 90 for sm_90.
  int architecture() const { return gpu.architecture; }

  /// Makes it the calling thread's.
  [[nodiscard]] absl::Status makeCurrent() const;

  /// A code of the driver as a Status (DriverStatus.h).
  absl::Status check(CUresult result, absl::string_view what) const {
    return toStatus(*api, result, what);
  }

private:
  Context(const Driver &driver, GpuDescription gpu)
      : api(&driver), gpu(std::move(gpu)) {}

  const Driver *api;
  const GpuDescription gpu;
  CUcontext context = nullptr;
};

/// Number of GPUs that the driver shows.
[[nodiscard]] absl::StatusOr<int> countGpus(const Driver &driver);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_CONTEXT_H
