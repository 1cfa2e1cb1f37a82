//===- RoundingBound.h - Error bounds of reordered sums ---------*- C++ -*-===//
//
// The global and the partitioned program do the same arithmetic except for the
// order of sums. A floating-point sum of n terms, in any order, is off by at
// most (n - 1) u Σ|terms|, u = 2^-53 (Higham, Accuracy and Stability of
// Numerical Algorithms, section 4.2). It is exact if all terms are multiples of
// some 2^q and Σ|terms| <= 2^(53 + q), as on integers. Plain values;
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_INTERPRETER_ROUNDINGBOUND_H
#define SHARDC_INTERPRETER_ROUNDINGBOUND_H

#include "shardc/Interpreter/Tensor.h"

#include "mlir/IR/Operation.h"

namespace shardc {

/// The error bound of a value's elements, and the size of their terms.
struct RoundingBound {
  /// Bound of Σ|terms|.
  double magnitude = 0;
  /// All terms are multiples of 2^quantum.
  int quantum = 0;
  /// Roundings that depend on the order. At 0 both programs have the same bits.
  double roundings = 0;
  /// False after an op that is not linear on operands with roundings, or on
  /// unknown operands.
  bool isKnown = true;

  /// The most that an element may differ between the programs; `global` is the
  /// value in the global one. For unknown values it is 1e-9 of the greatest
  /// element.
  double getTolerance(const Tensor &global) const;
};

/// The bound of a value that both programs have with the same bits.
RoundingBound measure(const Tensor &tensor);

/// The bound of the result of `op`, an op of the global program with result
/// `result`, from those of its operands; `divisor` is the second operand of a
/// division.
RoundingBound deriveBound(mlir::Operation *op, const Tensor &result,
                          llvm::ArrayRef<RoundingBound> operands,
                          const Tensor *divisor);

} // namespace shardc

#endif // SHARDC_INTERPRETER_ROUNDINGBOUND_H
