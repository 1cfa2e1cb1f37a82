//===- Reduce.h - Elementwise reduction of blocks ---------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_REDUCE_H
#define SHARDC_RT_SRC_COLLECTIVES_REDUCE_H

#include "plan/PlanSpec.h"

#include "absl/types/span.h"

namespace shardc::rt {

/// Elements that a block of `reduceBlock` may have.
inline constexpr int64_t maxReduceBlock = 4096;

/// What is reduced: the operand of a member of a group, or the reduction of a
/// node of its tree.
struct ReduceOperand {
  const void *data;
  int64_t leaves = 1;
};

/// out[i] = reduction over `in` of in[k][i], in the order of the tree
/// (ReductionTree.h), for `elements` <= maxReduceBlock elements from element
/// `offset` of each input. `out` may be one of the inputs' blocks. bf16 is
/// added in f32 and rounded once. Booleans: maximum only.
void reduceBlock(DType dtype, Reduction reduction,
                 absl::Span<const ReduceOperand> in, int64_t offset,
                 int64_t elements, void *out);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_REDUCE_H
