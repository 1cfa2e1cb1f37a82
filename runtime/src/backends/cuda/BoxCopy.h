//===- BoxCopy.h - Parts of tensors, from one to another --------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_BOXCOPY_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_BOXCOPY_H

#include "backends/cuda/Stream.h"

#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace shardc::rt::cuda {

/// `height` runs of `width` bytes, every `inPitch` and `outPitch` bytes.
struct Copy2D {
  CUdeviceptr in, out;
  uint64_t width, height, inPitch, outPitch;
};

/// A box within a row-major tensor: where the tensor lies, its shape and where
/// the box starts, in elements.
struct BoxOf {
  CUdeviceptr address;
  absl::Span<const int64_t> shape;
  std::vector<int64_t> start;
};

/// The fewest two-dimensional copies that move a box of `extent` elements from
/// one tensor to another. None if it is empty.
std::vector<Copy2D> copyBox(const BoxOf &in, const BoxOf &out,
                            absl::Span<const int64_t> extent,
                            int64_t elementBytes);

[[nodiscard]] absl::Status issue(const Copy2D &copy, const Stream &stream);

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_BOXCOPY_H
