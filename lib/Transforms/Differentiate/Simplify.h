//===- Simplify.h - Cleaning up differentiated programs ---------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_SIMPLIFY_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_SIMPLIFY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Constant folding, removal of neutral elements, common-subexpression
/// elimination, and dead-code elimination. All rewrites keep the bits of all
/// results, with one exception: a product with two constants, of which one is a
/// power of two, becomes a product with one constant.
///
/// Afterwards every constant, iota and broadcast scalar of rank > 0 has one
/// use. A shared one would tie the shardings of unrelated values.
void simplify(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_SIMPLIFY_H
