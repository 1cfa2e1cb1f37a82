//===- Alignment.h - Do the operands hold the right elements? ---*- C++ -*-===//
//
// Values can be right by chance: zeros and ones in the wrong place are still
// zeros and ones. Where the elements lie cannot: by its sharding rule an op
// combines positions of its tensors that are the same index of a factor.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_ALIGNMENT_H
#define SHARDC_INTERPRETER_ALIGNMENT_H

#include "shardc/Interpreter/Placement.h"
#include "shardc/Sharding/ShardingRule.h"

namespace shardc {

/// A tensor of an op and where it is.
struct PlacedTensor {
  /// Null if nothing is known; then it fits everything.
  const Placement *placement;
  llvm::ArrayRef<int64_t> globalShape;
};

/// An operand that does not lie where the op needs it.
struct Misplacement {
  unsigned operand;
  int64_t dim;
  int64_t device;
  /// The position along `dim` of the device's tensor, the index of the global
  /// tensor that is there, and the one that should be.
  int64_t position, found, expected;
};

/// The first operand, if there is one, that does not lie as the result does, or
/// as an operand before it does where the result lacks the factor. Dimensions
/// made of several factors are left out.
std::optional<Misplacement>
findMisplacement(const ShardingRule &rule,
                 llvm::ArrayRef<PlacedTensor> operands,
                 const PlacedTensor &result);

} // namespace shardc

#endif // SHARDC_INTERPRETER_ALIGNMENT_H
