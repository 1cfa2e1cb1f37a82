//===- WidenGradient.h - Gradients before they are rounded ------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_WIDENGRADIENT_H
#define SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_WIDENGRADIENT_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// `gradient` in the wider type `element`: where it is a product or a sum, as
/// it is before it is rounded, with ops built anew at the builder's place. The
/// old ones stay. `gradient` itself if it has that type.
mlir::Value widenGradient(mlir::OpBuilder &builder, mlir::Value gradient,
                          mlir::Type element);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_DIFFERENTIATE_WIDENGRADIENT_H
