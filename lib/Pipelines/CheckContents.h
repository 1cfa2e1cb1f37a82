//===- CheckContents.h - Whether memory holds what is read ------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_CHECKCONTENTS_H
#define SHARDC_LIB_PIPELINES_CHECKCONTENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shardc {

/// Follows a function whose values have their places, op by op, and notes what
/// the arena holds. Succeeds if every value is there whole whenever an op, the
/// result of the function or another program reads it.
mlir::LogicalResult checkContents(mlir::func::FuncOp function);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_CHECKCONTENTS_H
