//===- Expect.h - Contracts in the IR ---------------------------*- C++ -*-===//
//
// The legality of `shardc.expect` and the filters of its limits. Pure
// functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_EXPECT_H
#define SHARDC_DIALECT_SHARDC_IR_EXPECT_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <string>

namespace shardc {

/// The thing that a list of contracts is on.
enum class ExpectScope { Module, Function, Argument, Op };

/// The collectives that a limit counts: those that fit every member that is
/// set.
struct CollectiveFilter {
  std::optional<CollectiveKind> kind;
  mlir::StringAttr axis;
  std::optional<Part> part;
  mlir::StringAttr region;

  /// `collectives of all_gather over "data" in forward in region "tower"`,
  /// without the members that are not set. Without a noun, as the attribute is
  /// written.
  std::string toString(llvm::StringRef noun) const;
};

/// The filter of a #shardc.max_collectives or #shardc.max_bytes; nullopt for
/// other contracts.
std::optional<CollectiveFilter> getFilter(mlir::Attribute contract);

/// Checks that `attribute` is a legal list of contracts for something of scope
/// `scope` at or below `op`: E1 to E5 of the dialect's description.
mlir::LogicalResult
verifyExpectations(mlir::Attribute attribute, mlir::Operation *op,
                   ExpectScope scope,
                   llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// The same for the attributes `shardc.expect` and `shardc.region` of an op.
mlir::LogicalResult verifyExpectAttribute(mlir::Operation *op,
                                          mlir::NamedAttribute attribute);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_EXPECT_H
