//===- TrialPlan.h - What memory a plan needs -------------------*- C++ -*-===//
//
// Takes a copy of a module with a plan through the phases that decide about
// memory. These belong to the pipeline: it is handed in how (`PeakLimit`).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_TRIALPLAN_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_TRIALPLAN_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/AutoSharding/CheapestPlan.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {

/// Writes what a search says of its plan to `function`: `shardc.cost` and, if
/// starts have a price, `shardc.starts`. `within`: see CostAttr; 0: none.
void writeCost(mlir::func::FuncOp function, const CheapestPlan &plan,
               const CollectiveCosts &prices, const MeshAxes &mesh,
               int64_t within = 0);

/// The peaks of the functions of `module`, if they are sharded as `decisions`
/// say, of which `plans`, one per function, tell the cost. Changes nothing.
llvm::Expected<std::vector<int64_t>>
tryPlan(const ModuleGraph &module, const PlanDecisions &decisions,
        llvm::ArrayRef<CheapestPlan> plans, const CollectiveCosts &prices,
        bool regathers, const PeakLimit &limit);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_TRIALPLAN_H
