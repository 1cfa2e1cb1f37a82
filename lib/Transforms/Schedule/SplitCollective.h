//===- SplitCollective.h - Into a start and a wait --------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_SCHEDULE_SPLITCOLLECTIVE_H
#define SHARDC_LIB_TRANSFORMS_SCHEDULE_SPLITCOLLECTIVE_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Puts `collective` into a start where it stands, with the wait right behind,
/// whose results replace its own. Both are part of the step that it is part of.
CollectiveStartOp splitCollective(mlir::Operation *collective);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_SCHEDULE_SPLITCOLLECTIVE_H
