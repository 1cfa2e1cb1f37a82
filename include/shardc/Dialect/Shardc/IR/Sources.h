//===- Sources.h - What locations know about ops ----------------*- C++ -*-===//
//
// Reads and writes the metadata of locations: #shardc.source, what the user
// wrote, and #shardc.move, why a tensor moves. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SOURCES_H
#define SHARDC_DIALECT_SHARDC_IR_SOURCES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// `loc` with `metadata`.
mlir::Location addMetadata(mlir::Location loc, mlir::Attribute metadata);

/// Where `loc` is in a file, without metadata; unknown if it is in none. For
/// arguments of blocks: MLIR prints their locations before the aliases that
/// metadata needs, and cannot read that again.
mlir::Location getFileLocation(mlir::Location loc);

/// What the user wrote at `loc`; null if nothing is known.
SourceAttr getSource(mlir::LocationAttr loc);

/// The moves behind a collective at `loc`: one list for each of its `count`
/// tensors; more than one move where reductions were nested. Empty if `loc`
/// does not tell them.
llvm::SmallVector<llvm::SmallVector<MoveAttr, 1>> getMoves(mlir::Location loc,
                                                           unsigned count);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_SOURCES_H
