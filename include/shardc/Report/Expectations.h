//===- Expectations.h - Checks of contracts ---------------------*- C++ -*-===//
//
// Checks a module against its contracts, in `shardc.expect` attributes and, for
// values, in locations. There is a function for each of the three points of the
// compilation at which a limited quantity is known. It emits an error at every
// broken contract, with the limit and the quantity found, and a note at every
// offender; it fails if there was an error. The functions only read the module:
// thread-safe on distinct contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_EXPECTATIONS_H
#define SHARDC_REPORT_EXPECTATIONS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace shardc {

/// `no_redundant_flops`, after `propagate`: ops have sharding strategies.
mlir::LogicalResult checkExpectedFlops(mlir::ModuleOp module);

/// The note at a collective that breaks a contract, and its line.
struct CollectiveNote {
  mlir::Location at;
  std::string text;
};

/// `max_collectives` and `max_bytes`, after `collectives`. `explain` writes the
/// notes; by default they give the causes of the collectives and point to
/// --explain for fix-its.
mlir::LogicalResult checkExpectedCollectives(
    mlir::ModuleOp module,
    mlir::function_ref<CollectiveNote(mlir::Operation *)> explain = nullptr);

/// `max_memory`, after `memory`.
mlir::LogicalResult checkExpectedMemory(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_REPORT_EXPECTATIONS_H
