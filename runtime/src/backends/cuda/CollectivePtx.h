//===- CollectivePtx.h - Kernels of collectives, as PTX ---------*- C++ -*-===//
//
// Between virtual devices of one GPU, collectives are copies and reductions of
// boxes. The plan does not have these kernels; they are here, as PTX: one that
// copies, and one for each type and reduction. An element is reduced in the
// order of the group's tree, with the CPU's rules (bf16 is added up in f32, a
// maximum keeps NaN), so that the bits are the CPU's.
//
// Parameters of every kernel: the addresses of the table's entries (BoxTable.h)
// and of the numbers of the blocks' entries, then the operands and results of
// an entry.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVEPTX_H
#define SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVEPTX_H

#include "plan/PlanSpec.h"

#include <string>
#include <vector>

namespace shardc::rt::cuda {

/// The most operands of a reduction.
inline constexpr size_t maxReduceOperands = 256;

inline constexpr const char *copyKernel = "shardc_copy_boxes";

/// "shardc_reduce_sum_f32" and so on; empty if the type cannot be summed.
std::string reduceKernel(DType dtype, Reduction reduction);

/// The names of all kernels.
std::vector<std::string> collectiveKernels();

/// The module of all kernels.
std::string collectivePtx();

} // namespace shardc::rt::cuda

#endif // SHARDC_RT_SRC_BACKENDS_CUDA_COLLECTIVEPTX_H
