//===- Nvtx.h - Names for a profiler ----------------------------*- C++ -*-===//
//
// NVTX, the interface by which NVIDIA's profilers learn what a program calls
// its parts, has no library: headers of the vendor load the profiler's, whose
// path is in the environment, and let it fill in a table of functions. This
// does the same with declarations of our own. Ranges are of a thread of the
// host: around what it issues, and around a run with --serialize around what a
// command takes.
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
  /// Lets the profiler's library at `path` take part. Unavailable: it does not
  /// load, or does not want to.
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
  /// `nvtx` is null where nobody listens.
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
