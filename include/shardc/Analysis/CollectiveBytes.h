//===- CollectiveBytes.h - Bytes that ops move ------------------*- C++ -*-===//
//
// Wire bytes of the collectives of a partitioned program, by the formulas of
// CostModel/WireBytes.h.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_COLLECTIVEBYTES_H
#define SHARDC_ANALYSIS_COLLECTIVEBYTES_H

#include "shardc/CostModel/WireBytes.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

namespace shardc {

/// Bytes of an element in memory (i1 takes one).
int64_t getElementBytes(mlir::Type elementType);

/// A collective of a partitioned program, as the reports count it.
struct CollectiveCost {
  CollectiveKind kind;
  int64_t groupSize;
  /// Of the tensors that the group sees (see getWireBytes).
  int64_t bytes;
  int64_t wireBytes;
};

/// The mesh axes along which `op` moves its operands: those of a collective, or
/// the axis of the pipeline for a transfer or send. Empty for any other op.
llvm::SmallVector<mlir::StringAttr> getMovedAxes(mlir::Operation *op);

/// The cost of `op`, an all_reduce, all_gather, reduce_scatter, all_to_all,
/// collective_permute, transfer or send on local tensors; nullopt for any other
/// op.
std::optional<CollectiveCost> getCollectiveCost(mlir::Operation *op);

} // namespace shardc

#endif // SHARDC_ANALYSIS_COLLECTIVEBYTES_H
