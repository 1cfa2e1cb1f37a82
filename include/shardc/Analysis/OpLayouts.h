//===- OpLayouts.h - Layouts of an op's operands and results ----*- C++ -*-===//
//
// Derives the layouts from the op's sharding rule and its `shardc.strategy`,
// the sharding strategy in which every planner hands its decisions to the
// partitioner.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_OPLAYOUTS_H
#define SHARDC_ANALYSIS_OPLAYOUTS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Sharding/ShardingGraph.h"

#include "mlir/IR/Operation.h"

namespace shardc {

/// The sharding strategy that a planner has given `op`, or null. It may have
/// its former name, `shardc.assignment`.
StrategyAttr getStrategyAttr(mlir::Operation *op);
/// Gives `op` a strategy in place of the one it may have, or none.
void setStrategyAttr(mlir::Operation *op, StrategyAttr strategy);

struct OpLayouts {
  ShardingRule rule;
  ShardingStrategy strategy;
  /// The layouts in which the op reads its operands.
  llvm::SmallVector<Layout, 2> operands;
  /// The layouts in which it produces its results.
  llvm::SmallVector<Layout, 1> results;

  /// The layouts of `op`. Emits an error and fails if the op has no strategy
  /// or one that does not fit its rule.
  static mlir::FailureOr<OpLayouts> get(mlir::Operation *op,
                                        const MeshAxes &mesh);
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_OPLAYOUTS_H
