//===- ReduceKernels.h - Kernels that reduce between devices ----*- C++ -*-===//
//
// Between virtual devices of one GPU, collectives are copies and one kernel per
// type and reduction. The plan does not have these kernels; they are here, as
// PTX. An element is reduced in the order of the group's tree, with the CPU's
// rules (bf16 is added up in f32, a maximum keeps NaN), so that the bits are
// the CPU's.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_REDUCEKERNELS_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_REDUCEKERNELS_H

#include "backends/cuda/Module.h"
#include "backends/cuda/Stream.h"
#include "plan/PlanSpec.h"

#include <array>

namespace shardc::rt::cuda {

/// The most operands and results of a reduction together. Their addresses are
/// in the parameters of the launch, which hold 4 KiB.
inline constexpr size_t maxReducePointers = 256;

/// The parameters of every kernel, in their order. Elements are numbered in
/// `rows` rows of `width`; the pitches are the distances of rows in elements.
/// The addresses are those of the operands, then of the results; each result
/// gets all elements.
struct ReduceParameters {
  uint64_t width;
  uint64_t rows;
  uint64_t inPitch;
  uint64_t outPitch;
  uint32_t operands;
  uint32_t results;
  std::array<CUdeviceptr, maxReducePointers> addresses;
};

/// PTX of all the kernels: "shardc_reduce_sum_f32" and so on.
std::string reducePtx();

/// The kernels on a GPU.
class ReduceKernels {
public:
  [[nodiscard]] static absl::StatusOr<ReduceKernels>
  load(const Context &context);

  /// InvalidArgument: booleans cannot be summed.
  [[nodiscard]] absl::Status issue(DType dtype, Reduction reduction,
                                   const ReduceParameters &parameters,
                                   const Stream &stream) const;

private:
  Module module;
};

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_REDUCEKERNELS_H
