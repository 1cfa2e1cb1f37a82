//===- VerifySharding.h - Legality of shardings -----------------*- C++ -*-===//

#ifndef SHARDC_DIALECT_SHARDC_IR_VERIFYSHARDING_H
#define SHARDC_DIALECT_SHARDC_IR_VERIFYSHARDING_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// The mesh that `sharding` names, seen from `from`; null if there is none.
MeshOp lookupMesh(mlir::Operation *from, mlir::FlatSymbolRefAttr name);

/// Succeeds iff `mesh` has `axis`. On failure it reports through `emitError`
/// and appends the axes of the mesh to that message.
mlir::LogicalResult
verifyAxis(mlir::StringAttr axis, MeshOp mesh,
           llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

/// Succeeds iff `sharding` is legal for a tensor of global type `type`:
///   S1: it names a mesh of the module;
///   S2: one entry per dimension;
///   S3: every axis is one of the mesh;
///   S4: an axis occurs once over dimensions, replicated and unreduced axes;
///   S5: under uneven=error (on the sharding, else on the module) every
///       dimension divides by the number of its shards;
///   S6: no axis is that of the module's pipeline.
/// On failure it reports through `emitError` and appends the fault and the
/// expectation to that message. Gaps of strided shards are errors (of S3)
/// unless `allowGaps`: only the partitioner makes them.
mlir::LogicalResult
verifySharding(ShardingAttr sharding, mlir::RankedTensorType type,
               mlir::Operation *from,
               llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
               bool allowGaps = false);

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_VERIFYSHARDING_H
