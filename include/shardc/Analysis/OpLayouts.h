//===- OpLayouts.h - Layouts of an op's operands and results ----*- C++ -*-===//
//
// Derives the layouts from the op's sharding rule and its `shardc.assignment`,
// the sharding strategy in which every planner hands its decisions to the
// partitioner.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_OPLAYOUTS_H
#define SHARDC_ANALYSIS_OPLAYOUTS_H

#include "shardc/Sharding/ShardingGraph.h"

#include "mlir/IR/Operation.h"

namespace shardc {

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
