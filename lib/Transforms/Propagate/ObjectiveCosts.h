//===- ObjectiveCosts.h - The costs of an objective -------------*- C++ -*-===//
//
// The cost model of the planner of `partition=cheapest`.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_OBJECTIVECOSTS_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_OBJECTIVECOSTS_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/CostModel/CollectiveCosts.h"

namespace shardc {

/// The costs of collectives by `objective`, "time" or "bytes". By time,
/// according to the model of `machine`, the ops of the graph get costs too, and
/// the seconds per byte are written to the module (`shardc.seconds_per_byte`).
/// Fails with an error at the module if the machine cannot be read.
mlir::FailureOr<CollectiveCosts> getObjectiveCosts(ModuleGraph &module,
                                                   llvm::StringRef objective,
                                                   llvm::StringRef machine);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_OBJECTIVECOSTS_H
