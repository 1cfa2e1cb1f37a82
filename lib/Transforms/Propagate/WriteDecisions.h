//===- WriteDecisions.h - Decisions of a planner in the IR ------*- C++ -*-===//
//
// Writes how a module is sharded into its IR: `shardc.assignment` and
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
  /// Per op where its axes came from; empty lists if nobody asked for them.
  std::vector<llvm::SmallVector<AxisUse>> origins;
};

/// Writes `decisions`, of which there is one for each op and value of the graph
/// of `module`. Fails with an error at the place if devices would find no whole
/// number of rows for each microbatch. Remarks on axes that shard nothing, and
/// on parameters that are used sharded but are not at rest.
mlir::LogicalResult writeDecisions(ModuleGraph &module,
                                   const Decisions &decisions);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_WRITEDECISIONS_H
