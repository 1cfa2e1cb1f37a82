//===- MeasureGpuCollectives.h - Collectives between GPUs -------*- C++ -*-===//
//
// What collectives take as steps issue them: in captured graphs, one behind the
// other.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_MEASUREGPUCOLLECTIVES_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_MEASUREGPUCOLLECTIVES_H

#include "backends/cuda/Collectives.h"
#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Event.h"
#include "backends/cuda/Graph.h"
#include "shardc-rt/Cuda.h"

namespace shardc::rt::cuda {

/// Collectives between the devices of meshes: virtual ones of one GPU, or the
/// GPUs of this process and of all others of `options.store`. These make the
/// same calls in the same order. Not thread-safe.
class MeasuredCollectives {
public:
  /// Unavailable: a library or a GPU is missing.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MeasuredCollectives>>
  open(const CudaOptions &options);

  /// Connects the devices of `mesh`, of which this process has the same number
  /// as every other. Those of before are left.
  [[nodiscard]] absl::Status connect(Mesh mesh);

  /// The least mean seconds of `spec`, whose tensors have no places: of all its
  /// groups together, from its start to that of the next one.
  [[nodiscard]] absl::StatusOr<double> measure(CollectiveSpec spec);

private:
  explicit MeasuredCollectives(const CudaOptions &options) : options(options) {}

  /// Gives the tensors of `spec` memory, which `places` keeps.
  absl::Status place(CollectiveSpec &spec, std::vector<DeviceMemory> &places);
  /// Those of the devices of this process.
  std::vector<const Stream *> streamsOfDevices() const;
  /// Seconds of a launch of `graphs`, one on each GPU.
  absl::StatusOr<double> timeLaunches(absl::Span<const Graph> graphs);

  const CudaOptions &options;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<Nccl> nccl; ///< Null: all devices are on one GPU.
  struct Gpu {
    std::unique_ptr<Context> context;
    Stream stream;
    Event done;
  };
  std::vector<Gpu> gpus;
  Mesh mesh;
  /// Of this process.
  std::vector<int64_t> devices;
  std::unique_ptr<DeviceCollectives> collectives;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_MEASUREGPUCOLLECTIVES_H
