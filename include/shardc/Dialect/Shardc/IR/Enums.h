//===- Enums.h - The enumerations of the dialect ----------------*- C++ -*-===//
//
// Collectives, reductions, parts of a step, optimizers: plain C++, generated
// from ShardcAttrs.td, with `stringifyPart` and `symbolizePart` for each. The
// one header of the dialect that code without MLIR includes.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_ENUMS_H
#define SHARDC_DIALECT_SHARDC_IR_ENUMS_H

// Of MLIR, names alone: generated parsers of attributes, which are templates,
// use some.
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <optional>
#include <string>

#include "shardc/Dialect/Shardc/IR/ShardcEnums.h.inc"

#endif // SHARDC_DIALECT_SHARDC_IR_ENUMS_H
