//===- Alignment.h - Positions of the operands' elements --------*- C++ -*-===//
//
// Values can be right by chance: zeros and ones in the wrong place are still
// zeros and ones. Positions cannot. By its sharding rule an op combines
// positions of its tensors with the same index of a factor.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_ALIGNMENT_H
#define SHARDC_INTERPRETER_ALIGNMENT_H

#include "shardc/Interpreter/Placement.h"
#include "shardc/Sharding/ShardingRule.h"

namespace shardc {

/// A tensor of an op and its placement.
struct PlacedTensor {
  /// Null: unknown, and compatible with every placement.
  const Placement *placement;
  llvm::ArrayRef<int64_t> globalShape;
};

/// An operand with elements in the wrong position for its op.
struct Misplacement {
  unsigned operand;
  int64_t dim;
  int64_t device;
  /// The position along `dim` of the device's tensor, the index of the global
  /// tensor there, and the expected one.
  int64_t position, found, expected;
};

/// The first operand, if there is one, whose positions differ from those of the
/// result or, where the result lacks the factor, from those of an earlier
/// operand. Dimensions made of several factors are left out.
std::optional<Misplacement>
findMisplacement(const ShardingRule &rule,
                 llvm::ArrayRef<PlacedTensor> operands,
                 const PlacedTensor &result);

} // namespace shardc

#endif // SHARDC_INTERPRETER_ALIGNMENT_H
