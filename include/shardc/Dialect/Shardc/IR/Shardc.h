//===- Shardc.h - The shardc dialect ----------------------------*- C++ -*-===//
//
// One include for code that works with the dialect. Enums, attributes, types
// and ops are generated from the .td files beside this header; docs/Dialect.md
// is the reference.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDC_H
#define SHARDC_DIALECT_SHARDC_IR_SHARDC_H

#include "shardc/Dialect/Shardc/IR/Enums.h"
#include "shardc/Sharding/ShardingRule.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "shardc/Dialect/Shardc/IR/ShardcDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "shardc/Dialect/Shardc/IR/ShardcAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "shardc/Dialect/Shardc/IR/ShardcTypes.h.inc"

#include "shardc/Dialect/Shardc/IR/ShardcInterfaces.h.inc"

#define GET_OP_CLASSES
#include "shardc/Dialect/Shardc/IR/ShardcOps.h.inc"

#endif // SHARDC_DIALECT_SHARDC_IR_SHARDC_H
