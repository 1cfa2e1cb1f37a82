//===- Sources.h - Provenance in locations ----------------------*- C++ -*-===//
//
// Reads and writes the metadata of locations: #shardc.source, the user's op or
// argument, and #shardc.move, the cause of a move. Pure functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SOURCES_H
#define SHARDC_DIALECT_SHARDC_IR_SOURCES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <string>

namespace shardc {

/// `loc` with `metadata`.
mlir::Location addMetadata(mlir::Location loc, mlir::Attribute metadata);

/// The place of `loc` in a file, without metadata; unknown if it has none. For
/// arguments of blocks: MLIR prints their locations before the aliases that
/// metadata needs, and cannot read that again.
mlir::Location getFileLocation(mlir::Location loc);

/// The place of `loc` as "FILE:LINE:COL", or "" if it has none.
std::string getSourceString(mlir::Location loc);

/// The user's op or argument at `loc`; null if it is not known.
SourceAttr getSource(mlir::LocationAttr loc);

/// The moves behind a collective at `loc`: one list for each of its `count`
/// tensors, with several moves where nested reductions were joined. Empty if
/// `loc` does not tell.
llvm::SmallVector<llvm::SmallVector<MoveAttr, 1>> getMoves(mlir::Location loc,
                                                           unsigned count);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_SOURCES_H
