//===- Gpu.h - A GPU and what is loaded on it -------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_GPU_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_GPU_H

#include "backends/cuda/Gemm.h"
#include "backends/cuda/Module.h"

namespace shardc::rt::cuda {

/// What the devices of the mesh on one GPU share. Members are destroyed from
/// the last to the first: what needs something stands behind it.
struct Gpu {
  std::unique_ptr<Context> context;
  /// Where runs begin and end.
  std::unique_ptr<Stream> main;
  std::unique_ptr<Event> copied;
  Module kernels;
  /// Null if the plan has no GEMMs.
  std::unique_ptr<GemmLibrary> gemms;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_GPU_H
