//===- Gpu.h - A GPU, its stream and its kernels -------------------*- C++
//-*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_GPU_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_GPU_H

#include "backends/cuda/Gemm.h"
#include "backends/cuda/Module.h"

namespace shardc::rt::cuda {

/// A GPU, shared by the devices of the mesh on it. Members are destroyed from
/// the last to the first: each may use those before it.
struct Gpu {
  std::unique_ptr<Context> context;
  /// Runs begin and end on this stream.
  std::unique_ptr<Stream> main;
  /// Inputs of the next run are copied here.
  std::unique_ptr<Stream> uploads;
  /// For waits until `main` is idle.
  std::unique_ptr<Event> done;
  Module kernels;
  /// Null if the plan has no GEMMs.
  std::unique_ptr<GemmLibrary> gemms;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_GPU_H
