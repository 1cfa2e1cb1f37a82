//===- SplitCollective.h - Start and wait of a collective -------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_SCHEDULE_SPLITCOLLECTIVE_H
#define SHARDC_LIB_TRANSFORMS_SCHEDULE_SPLITCOLLECTIVE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Splits `collective` into a start, which stands in its place and contains it,
/// and a wait right behind, whose results replace its own. Both inherit its
/// part of the step. Returns the start.
CollectiveStartOp splitCollective(mlir::Operation *collective);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_SCHEDULE_SPLITCOLLECTIVE_H
