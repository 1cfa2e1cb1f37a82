//===- CollectiveCauses.h - Causes of merged collectives --------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVECAUSES_H
#define SHARDC_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVECAUSES_H

#include "mlir/IR/Operation.h"

namespace shardc {

/// Sets the `shardc.cause` of `merged` to the distinct causes of `members`. If
/// there are many, names the first and counts the others. Leaves `merged`
/// unchanged if no member has a cause.
void setJoinedCause(mlir::Operation *merged,
                    llvm::ArrayRef<mlir::Operation *> members);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVECAUSES_H
