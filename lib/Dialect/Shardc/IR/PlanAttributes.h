//===- PlanAttributes.h - Legality of search results ------------*- C++ -*-===//

#ifndef SHARDC_LIB_DIALECT_SHARDC_IR_PLANATTRIBUTES_H
#define SHARDC_LIB_DIALECT_SHARDC_IR_PLANATTRIBUTES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Succeeds iff `attribute` of `op`, which is `shardc.cost`, `shardc.starts` or
/// `shardc.seconds_per_byte`, is legal: P1 to P3 of the dialect's description.
/// Otherwise emits an error at `op`.
mlir::LogicalResult verifyPlanAttribute(mlir::Operation *op,
                                        mlir::NamedAttribute attribute);

} // namespace shardc

#endif // SHARDC_LIB_DIALECT_SHARDC_IR_PLANATTRIBUTES_H
