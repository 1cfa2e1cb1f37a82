//===- TrialPlan.h - The memory of a plan -----------------------*- C++ -*-===//
//
// Compiles a copy of a module with a plan through the phases that decide its
// memory. These belong to the pipeline, which passes them in as `PeakLimit`.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_TRIALPLAN_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_TRIALPLAN_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/AutoSharding/CheapestPlan.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {

/// Writes the cost of a plan to `function`: `shardc.cost` and, if collectives
/// have latencies, `shardc.starts`. `within`: see CostAttr; 0: no limit.
void writeCost(mlir::func::FuncOp function, const CheapestPlan &plan,
               const CollectiveCosts &collectiveCosts, const MeshAxes &mesh,
               int64_t within = 0);

/// The peaks of the functions of `module` if they are sharded by `decisions`;
/// `plans` has the plan of each function. Does not change `module`.
llvm::Expected<std::vector<int64_t>>
tryPlan(const ModuleGraph &module, const PlanDecisions &decisions,
        llvm::ArrayRef<CheapestPlan> plans,
        const CollectiveCosts &collectiveCosts, bool regathers,
        const PeakLimit &limit);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_TRIALPLAN_H
