//===- NestValues.h - What kernels can compute ------------------*- C++ -*-===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_NESTVALUES_H
#define SHARDC_CONVERSION_KERNELEMITTER_NESTVALUES_H

#include "mlir/IR/Operation.h"

namespace shardc {

/// Emits an error unless NestEmitter has code for `op`, an op of a kernel.s
/// body. All lowerings of kernels ask before they emit anything.
mlir::LogicalResult checkHasValue(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_NESTVALUES_H
