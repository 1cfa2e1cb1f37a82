//===- LocalGpus.h - The GPUs of this process -------------------*- C++ -*-===//
//
// The driver, the vendor's libraries, the GPUs that run the devices of this
// process, and the connection between these devices. Not thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_LOCALGPUS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_LOCALGPUS_H

#include "backends/cuda/Collectives.h"
#include "backends/cuda/Gpu.h"
#include "backends/cuda/Nvtx.h"
#include "shardc-rt/Cuda.h"

#include <memory>
#include <vector>

namespace shardc::rt::cuda {

/// Members are destroyed from the last to the first: each may use those before
/// it.
struct LocalGpus {
  /// Opens the driver, the libraries that `plan` and `options` need, and the
  /// GPUs that `options` name. Unavailable: one is missing, or a GPU is older
  /// than the code of the plan.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<LocalGpus>>
  open(const PlanSpec &plan, const CudaOptions &options);

  /// Connects the devices `local` of the mesh, which belong to this process,
  /// with each other and with those of other processes. InvalidArgument:
  /// another process has another plan or seed.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<DeviceCollectives>>
  connect(const PlanSpec &plan, uint64_t seed,
          const std::vector<int64_t> &local, const CudaOptions &options);

  /// Waits until the main stream of `gpu` has done all of its work.
  [[nodiscard]] absl::Status wait(const Gpu &gpu, absl::Duration deadline,
                                  absl::string_view what) const;

  std::unique_ptr<Driver> driver;
  std::unique_ptr<CublasLt> cublasLt; ///< Null: the plan has no GEMMs.
  std::unique_ptr<Nvtx> nvtx;         ///< Null: no profiler listens.
  std::unique_ptr<Nccl> nccl;         ///< Null: all devices are on one GPU.
  std::vector<std::unique_ptr<Gpu>> gpus;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_LOCALGPUS_H
