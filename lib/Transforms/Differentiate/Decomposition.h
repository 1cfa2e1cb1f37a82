//===- Decomposition.h - Expanding composites -------------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_DECOMPOSITION_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_DECOMPOSITION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Replaces the composites of `function` by their decompositions, which inherit
/// locations and discardable attributes. Without `all`, two kinds stay:
/// composites with a gradient of their own, and dropouts in a function without
/// a step counter. With `all`, such a dropout becomes its operand.
void decomposeComposites(mlir::func::FuncOp function, bool all);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_DECOMPOSITION_H
