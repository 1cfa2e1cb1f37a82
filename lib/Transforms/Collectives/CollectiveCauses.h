//===- CollectiveCauses.h - Causes of merged collectives --------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVECAUSES_H
#define SHARDC_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVECAUSES_H

#include "mlir/IR/Operation.h"

namespace shardc {

/// Sets the `shardc.cause` of `merged` to the causes of `members`, each once;
/// of many the first are named and the others counted. Leaves `merged` as it is
/// if no member has one.
void setJoinedCause(mlir::Operation *merged,
                    llvm::ArrayRef<mlir::Operation *> members);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_COLLECTIVES_COLLECTIVECAUSES_H
