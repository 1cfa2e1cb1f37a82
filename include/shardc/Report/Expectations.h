//===- Expectations.h - Are the contracts kept? -----------------*- C++ -*-===//
//
// Compares a module with the contracts in its `shardc.expect` attributes, and
// those that locations carry for values, at the three points where what they
// limit is known. Each function emits an error at every broken contract, with
// what is expected and found, and a note for every offender; it fails if there
// was one. They read the module only: thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_EXPECTATIONS_H
#define SHARDC_REPORT_EXPECTATIONS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace shardc {

/// `no_redundant_flops`, after `propagate`: ops have assignments.
mlir::LogicalResult checkExpectedFlops(mlir::ModuleOp module);

/// What is said of a collective that breaks a contract, and at which line.
struct CollectiveNote {
  mlir::Location at;
  std::string text;
};

/// `max_collectives` and `max_bytes`, after `collectives`. `explain` writes the
/// notes; by default they tell why the collectives exist, and where to learn
/// what would remove them.
mlir::LogicalResult checkExpectedCollectives(
    mlir::ModuleOp module,
    mlir::function_ref<CollectiveNote(mlir::Operation *)> explain = nullptr);

/// `max_memory`, after `memory`.
mlir::LogicalResult checkExpectedMemory(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_REPORT_EXPECTATIONS_H
