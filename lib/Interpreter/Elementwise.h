//===- Elementwise.h - Ops on one element at a time -------------*- C++ -*-===//

#ifndef SHARDC_LIB_INTERPRETER_ELEMENTWISE_H
#define SHARDC_LIB_INTERPRETER_ELEMENTWISE_H

#include "mlir/IR/Operation.h"

namespace shardc {

using UnaryFunction = double (*)(double);
using BinaryFunction = double (*)(double, double);

/// The function of a unary op, a conversion or an identity on an element; null
/// if `op` is none of these.
UnaryFunction getUnary(mlir::Operation *op);

/// The function of a binary op or a comparison on two elements; null if `op` is
/// none of these.
BinaryFunction getBinary(mlir::Operation *op);

/// The greater one; NaN if either is, so that padding is not lost.
double maximum(double a, double b);

} // namespace shardc

#endif // SHARDC_LIB_INTERPRETER_ELEMENTWISE_H
