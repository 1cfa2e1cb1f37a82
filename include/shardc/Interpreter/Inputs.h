//===- Inputs.h - Inputs of interpreted programs ----------------*- C++ -*-===//

#ifndef SHARDC_INTERPRETER_INPUTS_H
#define SHARDC_INTERPRETER_INPUTS_H

#include "shardc/Interpreter/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

enum class InputKind {
  /// On small integers arithmetic is exact.
  Integers,
  /// Fractions, multiples of 2^-12, of which hardly any two are equal: an
  /// element in the wrong place is not right by chance.
  Fractions,
};

/// The value of argument `index` of a global program, a function of the
/// argument, the element and `kind`. Parameters are in [-1, 1], so that deep
/// models stay finite; inputs in [-3, 3]; optimizer states in [0, 3], since
/// some are squares. The step counter is 3, and integers are classes (of
/// `shardc.label_classes`, else 2).
Tensor makeInput(mlir::func::FuncOp function, unsigned index, InputKind kind);

} // namespace shardc

#endif // SHARDC_INTERPRETER_INPUTS_H
