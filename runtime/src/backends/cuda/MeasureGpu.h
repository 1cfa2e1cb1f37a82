//===- MeasureGpu.h - What a GPU attains ------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_MEASUREGPU_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_MEASUREGPU_H

#include "backends/cuda/Stream.h"
#include "shardc-rt/Cuda.h"

#include "absl/types/span.h"

#include <map>
#include <vector>

namespace shardc::rt::cuda {

/// Rates of a GPU: FLOP/s of the library's GEMMs of squares by the type in
/// which they multiply, and bytes per second that copies read and write.
struct GpuRates {
  std::string name;
  uint64_t memoryBytes;
  double f32, tf32, bf16;
  double memory;
};

/// Measures GPU `options.gpu`, GEMMs with `size` rows and columns. They have
/// random factors and the first algorithm of the library's heuristics, as in
/// steps. Unavailable: there is no GPU, or a
/// library is missing. ResourceExhausted: its memory is in use.
[[nodiscard]] absl::StatusOr<GpuRates> measureGpu(const CudaOptions &options,
                                                  int64_t size = 8192);

/// A GEMM of `rows` by `columns` sums of `terms` products, which multiplies in
/// `type`: "f32", "tf32" or "bf16".
struct GemmTime {
  const char *type;
  int64_t rows, columns, terms;
  double seconds;
};

/// The time of a GEMM with `side` rows, columns and terms over that of one
/// which reads both factors as they are, by what it does besides:
/// "transpose_lhs", "transpose_rhs", or "sums_rhs", with the left factor
/// transposed and sums of the columns of the right one. Those of bf16 with the
/// left factor transposed have results of f32, as gradients of weights are.
struct GemmFactor {
  const char *type, *form;
  int64_t side;
  double factor;
};

/// The times of commands in captured graphs, each with its start.
struct GpuTimes {
  /// A launch of a graph besides its commands, and a small kernel that waits
  /// for the one before it.
  double stepSeconds, commandSeconds;
  /// Such kernels of eight streams, which do not wait for each other: from one
  /// to the next, on any of them.
  double concurrentCommandSeconds;
  /// The rate of copies from pinned memory of the host.
  double hostBytesPerSecond;
  /// Bytes per second that copies read and write, besides their starts, by the
  /// bytes between two accesses of the same.
  std::map<uint64_t, double> memory;
  /// Of library GEMMs of all types and combinations of sides.
  std::vector<GemmTime> gemms;
  /// Of all types, forms and sides.
  std::vector<GemmFactor> factors;
};

/// Measures GPU `options.gpu`, with GEMMs of all combinations of `sides`.
/// Errors as of measureGpu.
[[nodiscard]] absl::StatusOr<GpuTimes>
measureTimes(const CudaOptions &options, absl::Span<const int64_t> sides);

/// Bytes per second that copies of `bytes` bytes within a GPU, of which
/// `repeats` are timed, read and write.
[[nodiscard]] absl::StatusOr<double> measureCopies(const Stream &stream,
                                                   uint64_t bytes, int repeats,
                                                   absl::Duration deadline);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_MEASUREGPU_H
