//===- Epilogues.h - Helpers for epilogues of GEMMs -------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_KERNELS_EPILOGUES_H
#define SHARDC_LIB_TRANSFORMS_KERNELS_EPILOGUES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Whether all elements of `value` are known to be zero, of either sign.
bool isZero(mlir::Value value);

/// Dead-code elimination in `block`: fusion leaves broadcast biases and the
/// zeros of relus without uses.
void eraseDeadOps(mlir::Block &block);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_KERNELS_EPILOGUES_H
