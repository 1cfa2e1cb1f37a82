//===- ConstantIntegers.h - Integers known at compile time ------*- C++ -*-===//
//
// The counters of loops and the indices made of them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_IMPORT_CONSTANTINTEGERS_H
#define SHARDC_LIB_IMPORT_CONSTANTINTEGERS_H

#include "mlir/IR/Builders.h"

namespace shardc {

/// The integer or boolean that `value`, a tensor of one element, is, if it is a
/// constant.
std::optional<int64_t> getConstantInteger(mlir::Value value);

/// `value`, or a constant in place of arithmetic on constant integers.
mlir::Value foldInteger(mlir::OpBuilder &builder, mlir::Value value);

} // namespace shardc

#endif // SHARDC_LIB_IMPORT_CONSTANTINTEGERS_H
