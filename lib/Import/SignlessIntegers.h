//===- SignlessIntegers.h - Unsigned integers as bits -----------*- C++ -*-===//

#ifndef SHARDC_LIB_IMPORT_SIGNLESSINTEGERS_H
#define SHARDC_LIB_IMPORT_SIGNLESSINTEGERS_H

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Makes integers of ui32 and ui64 in `source`, a module of StableHLO, those of
/// i32 and i64, as the tensor core has them. Ops that would otherwise take them
/// as signed are marked: isUnsigned.
void makeSignless(mlir::ModuleOp source);

/// Whether `op` has unsigned operands, or converts floats to unsigned integers.
bool isUnsigned(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_SIGNLESSINTEGERS_H
