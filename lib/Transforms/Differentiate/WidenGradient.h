//===- WidenGradient.h - Gradients before they are rounded ------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_WIDENGRADIENT_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_WIDENGRADIENT_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Returns `gradient` in the type `element`, which is the same or wider. If it
/// is a GEMM or a sum, perhaps transposed or reshaped, builds these ops again
/// at the insertion point of `builder`, with results that are not rounded; the
/// old ops stay. Else converts `gradient`.
mlir::Value widenGradient(mlir::OpBuilder &builder, mlir::Value gradient,
                          mlir::Type element);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_WIDENGRADIENT_H
