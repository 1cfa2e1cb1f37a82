//===- PlanCheapest.h - The plan of least cost of a module ------*- C++ -*-===//
//
// The planner behind `partition=cheapest`: searches for the cheapest plan of
// the first function, and then of each other one with its arguments where they
// rest. What a single search does is said in CheapestPlan.h. Where memory is
// limited, a plan of a function fits if those of later ones do that it leaves
// (MemoryConstrainedSearch.h).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_PLANCHEAPEST_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_PLANCHEAPEST_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/AutoSharding/CostTerms.h"
#include "shardc/Transforms/Passes.h"

#include <memory>

namespace shardc {

/// Those options of `propagate` that say what is searched for, and how long.
struct CheapestOptions {
  /// "time" or "bytes".
  std::string objective;
  std::string machine;
  /// Whether `module` was built so: what the backward pass has of a weight is a
  /// tensor of its own.
  bool regathers;
  /// See PlanLimits.
  double gap;
  /// As in CompileOptions: 0 means the default.
  int64_t maxAssignments, maxBranchOptions;
  PeakLimit limit;
};

/// Decides how every op of `module` is sharded and where its values rest.
/// Writes what the search says of the plan to the functions (`shardc.cost`,
/// `shardc.starts`) and, if time was asked for, the prices of bytes to the
/// module (`shardc.seconds_per_byte`). Fails with an error at the place if
/// there is no plan, the machine cannot be read, a limit is exceeded, or none
/// of the plans that were tried fits. `steps` are those of the module's mesh.
mlir::FailureOr<PlanDecisions> planCheapest(ModuleGraph &module,
                                            const CheapestOptions &options,
                                            std::shared_ptr<LayoutSteps> steps);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_PLANCHEAPEST_H
