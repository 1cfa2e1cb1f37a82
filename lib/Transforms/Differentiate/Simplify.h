//===- Simplify.h - Cleaning up differentiated programs ---------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_SIMPLIFY_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_SIMPLIFY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Folds arithmetic on splat constants and neutral elements, merges equal ops
/// and removes dead ones. Only rewrites that keep every result's bits are made,
/// except that a product with two constants of which one is a power of two
/// becomes a product with one.
///
/// In the end every constant, iota and repeated scalar of rank > 0 has one
/// user: shared, it would tie the shardings of values that are not related.
void simplify(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_SIMPLIFY_H
