//===- Expectations.h - Are the contracts kept? -----------------*- C++ -*-===//
//
// Compares a module with the contracts in its `shardc.expect` attributes, and
// those that locations carry for values, at the three points where what they
// limit is known. Each function emits an error at every broken contract, with
// what is expected and found, and a note for every offender; it fails if there
// was one. They read the module only: thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_EXPECTATIONS_H
#define SHARDC_ANALYSIS_EXPECTATIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// `no_redundant_flops`, after `propagate`: ops have assignments.
mlir::LogicalResult checkExpectedFlops(mlir::ModuleOp module);

/// `max_collectives` and `max_bytes`, after `collectives`.
mlir::LogicalResult checkExpectedCollectives(mlir::ModuleOp module);

/// `max_memory`, after `memory`.
mlir::LogicalResult checkExpectedMemory(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_ANALYSIS_EXPECTATIONS_H
