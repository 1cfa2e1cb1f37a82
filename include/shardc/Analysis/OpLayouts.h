//===- OpLayouts.h - What an op wants and what it makes ---------*- C++ -*-===//
//
// Derives from an op's sharding rule and its `shardc.assignment` the layouts of
// its operands and results: the form in which every planner hands its decisions
// to the partitioner.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_OPLAYOUTS_H
#define SHARDC_ANALYSIS_OPLAYOUTS_H

#include "shardc/Sharding/ShardingGraph.h"

#include "mlir/IR/Operation.h"

namespace shardc {

struct OpLayouts {
  ShardingRule rule;
  Assignment assignment;
  /// Layouts in which the op wants its operands.
  llvm::SmallVector<Layout, 2> operands;
  /// Layouts in which it makes its results.
  llvm::SmallVector<Layout, 1> results;

  /// The layouts of `op`. Emits an error and fails if the op has no assignment
  /// or one that does not fit its rule.
  static mlir::FailureOr<OpLayouts> get(mlir::Operation *op,
                                        const MeshAxes &mesh);
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_OPLAYOUTS_H
