//===- Epilogues.h - What finds epilogues of products -----------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_KERNELS_EPILOGUES_H
#define SHARDC_LIB_TRANSFORMS_KERNELS_EPILOGUES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Whether all elements of `value` are known to be zero, of either sign.
bool isZero(mlir::Value value);

/// Erases what only fused ops used: broadcast biases, the zeros of a relu.
void eraseDeadOps(mlir::Block &block);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_KERNELS_EPILOGUES_H
