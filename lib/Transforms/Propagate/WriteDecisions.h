//===- WriteDecisions.h - Decisions of a planner in the IR ------*- C++ -*-===//
//
// Writes the sharding of a module to its IR: `shardc.strategy` and
// `shardc.origin` on ops, closed `shardc.sharding` on arguments and results.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_WRITEDECISIONS_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_WRITEDECISIONS_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/AutoSharding/CostTerms.h"
#include "shardc/Sharding/Propagation.h"

namespace shardc {

struct Decisions : PlanDecisions {
  /// Per op the origins of its axes; empty lists if they are not recorded.
  std::vector<llvm::SmallVector<AxisUse>> origins;
};

/// Writes `decisions`, one for each op and value of the graph of `module`.
/// Fails with an error at its location if microbatches do not divide the rows
/// of a device. Remarks on axes that shard nothing, and on parameters that are
/// used sharded but stored replicated.
mlir::LogicalResult writeDecisions(ModuleGraph &module,
                                   const Decisions &decisions);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_WRITEDECISIONS_H
