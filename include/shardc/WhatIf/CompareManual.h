//===- CompareManual.h - Compares shard_map with automatic partitioning ---===//

#ifndef SHARDC_WHATIF_COMPAREMANUAL_H
#define SHARDC_WHATIF_COMPAREMANUAL_H

#include "shardc/WhatIf/CompareCheapest.h"

namespace shardc {

/// A copy of `module`, before `propagate`, without the sharding constraints
/// of a shard_map of JAX; none if it has no collective.
mlir::OwningOpRef<mlir::ModuleOp> copyWithoutManual(mlir::ModuleOp module);

/// Compares the step of `module`, after `memory`, whose collectives are those
/// of a shard_map, with the plan of `--partition=cheapest` of `automatic`,
/// which copyWithoutManual made. The place of the result is that of the first
/// collective. nullopt if there is no function.
std::optional<CheapestComparison> compareManual(mlir::ModuleOp module,
                                                mlir::ModuleOp automatic,
                                                const CompileOptions &options);

/// Emits a remark at the place of the comparison.
void remarkOnManual(const CheapestComparison &comparison);

} // namespace shardc

#endif // SHARDC_WHATIF_COMPAREMANUAL_H
