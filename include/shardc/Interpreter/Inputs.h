//===- Inputs.h - What programs are interpreted on -------------*- C++ -*-===//

#ifndef SHARDC_INTERPRETER_INPUTS_H
#define SHARDC_INTERPRETER_INPUTS_H

#include "shardc/Interpreter/Tensor.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// The value of argument `index` of a global program: small integers that
/// depend on `seed`, the argument and the element only. Parameters are in
/// [-1, 1], so that deep models stay finite, inputs in [-3, 3], optimizer
/// states in [0, 3] as the squares among them are, the step counter is 3,
/// integers are classes (of `shardc.label_classes`, else 2).
Tensor makeInput(mlir::func::FuncOp function, unsigned index, uint64_t seed);

} // namespace shardc

#endif // SHARDC_INTERPRETER_INPUTS_H
