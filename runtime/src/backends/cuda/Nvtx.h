//===- Nvtx.h - Names for a profiler ----------------------------*- C++ -*-===//
//
// NVTX, the interface by which NVIDIA's profilers learn the names that a
// program gives to its parts, has no library: headers of the vendor load the
// profiler's, whose path is in the environment, and let it fill in a table of
// functions. This does the same with declarations of our own. Ranges belong to
// a thread of the host: they enclose the issue of a command and, with
// --serialize, its execution.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_NVTX_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_NVTX_H

#include "backends/cuda/SharedLibrary.h"

#include <memory>
#include <string>

namespace shardc::rt::cuda {

/// A profiler that listens, to the end of the process: all objects share the
/// one that was opened first.
class Nvtx {
public:
  /// Connects the profiler's library at `path`. Unavailable: it does not load,
  /// or it declines.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Nvtx>>
  open(const std::string &path);

  void push(const std::string &name) const;
  void pop() const;

private:
  Nvtx() = default;
};

/// A range from here to the end of the scope.
class NvtxRange {
public:
  /// `nvtx` is null if no profiler listens.
  NvtxRange(const Nvtx *nvtx, const std::string &name) : nvtx(nvtx) {
    if (nvtx)
      nvtx->push(name);
  }
  ~NvtxRange() {
    if (nvtx)
      nvtx->pop();
  }
  NvtxRange(const NvtxRange &) = delete;
  NvtxRange &operator=(const NvtxRange &) = delete;

private:
  const Nvtx *nvtx;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_NVTX_H
