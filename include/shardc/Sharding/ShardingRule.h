//===- ShardingRule.h - Dimensions to factors -------------------*- C++ -*-===//
//
// The rule by which an op may be sharded: each dimension of an operand or a
// result is made of factors, as the indices of an einsum. The notion is
// Shardy's and, before it, that of einsum shardings in GSPMD (arXiv
// 2105.04663).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_SHARDING_SHARDINGRULE_H
#define SHARDC_SHARDING_SHARDINGRULE_H

#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace shardc {

/// The effect of sharding a factor on the op.
enum class FactorKind {
  /// Shards compute their own part of the result.
  Parallel,
  /// Absent from the results and summed over: shards hold partial sums.
  /// Padding of every operand that has the factor must be zero.
  Sum,
  /// Absent from the results and maximised over: shards hold partial maxima,
  /// which are reduced at once. Padding must be the lowest value.
  Max,
  /// Cannot be sharded.
  Whole,
};

/// One index of the op's iteration space.
struct Factor {
  /// Global number of elements.
  int64_t size;
  FactorKind kind = FactorKind::Parallel;
  /// Sharding must divide `size` (a factor of a dimension made of several).
  bool mustDivide = false;
  /// The factor before this one in a dimension made of several, or -1. Only if
  /// each shard of that one is a single index may this one be sharded, since
  /// blocks of the dimension are shards of both.
  int major = -1;
  /// Each shard must be a single index: the op sends it to another device.
  bool oneEach = false;
};

/// The operands that an op may receive as partial sums such that its results
/// are partial sums over the same axes.
enum class PartialRule {
  /// None: the op is not linear.
  Never,
  /// All tensor operands together (add, sub, negate, transpose, reduce-sum).
  Additive,
  /// Exactly one of operands 0 and 1, the other replicated over the axes (mul,
  /// dot_general).
  Multilinear,
  /// Operand 0 alone (div: the divisor must be reduced).
  FirstOperand,
};

/// The factors of an op and where they appear.
struct ShardingRule {
  /// Factor indices of one dimension, major to minor. Empty: a dimension of
  /// size 1 or one that the op does not relate to others.
  using DimFactors = llvm::SmallVector<int, 1>;
  /// One entry per dimension.
  using TensorFactors = llvm::SmallVector<DimFactors, 2>;

  llvm::SmallVector<Factor, 3> factors;
  llvm::SmallVector<TensorFactors, 2> operands;
  llvm::SmallVector<TensorFactors, 1> results;
  PartialRule partial = PartialRule::Never;
  /// The op computes from global indices, or sends indices to other devices:
  /// its shards must be blocks, not strided.
  bool needsBlocks = false;
};

} // namespace shardc

#endif // SHARDC_SHARDING_SHARDINGRULE_H
