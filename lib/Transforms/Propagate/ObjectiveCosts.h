//===- ObjectiveCosts.h - What an objective prices --------------*- C++ -*-===//
//
// The prices that the planner of `partition=cheapest` works with.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_OBJECTIVECOSTS_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_OBJECTIVECOSTS_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/CostModel/CollectiveCosts.h"

namespace shardc {

/// The prices of collectives by `objective`, "time" or "bytes". By time, as the
/// model of `machine` has it, ops of the graph get prices too, and the prices
/// of bytes are written to the module (`shardc.seconds_per_byte`). Fails with
/// an error at the module if the machine cannot be read.
mlir::FailureOr<CollectiveCosts> getObjectivePrices(ModuleGraph &module,
                                                    llvm::StringRef objective,
                                                    llvm::StringRef machine);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_OBJECTIVECOSTS_H
