//===- Device.h - A device of the mesh on a GPU -----------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_DEVICE_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_DEVICE_H

#include "backends/cuda/DeviceMemory.h"
#include "backends/cuda/Gpu.h"
#include "backends/cuda/Stream.h"
#include "plan/PlanSpec.h"

#include <array>
#include <memory>

namespace shardc::rt::cuda {

/// The resources of one device of the mesh on its GPU.
struct Device {
  /// In the mesh.
  int64_t number;
  /// Of the pipeline; 0 without one.
  int rank = 0;
  const Gpu *gpu;
  DeviceMemory arena;
  /// Kernel contexts (docs/PlanFormat.md), one for each run of a loop.
  DeviceMemory kernelContexts;
  uint64_t kernelContextBytes = 0;
  /// Of GEMMs.
  DeviceMemory workspace;
  /// By rt::Stream. Devices of one GPU share the stream of communication.
  std::array<std::shared_ptr<Stream>, 3> streams;

  const Stream &stream(rt::Stream which) const {
    return *streams[static_cast<size_t>(which)];
  }
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_DEVICE_H
