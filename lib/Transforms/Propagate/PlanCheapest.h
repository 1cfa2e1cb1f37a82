//===- PlanCheapest.h - The cheapest plan of a module -----------*- C++ -*-===//
//
// The planner of `partition=cheapest`. It searches for the cheapest plan of the
// first function (CheapestPlan.h), then of each later one, whose arguments have
// the storage layouts decided before. With a memory limit, a plan of a function
// fits if it leaves plans of the later functions that fit
// (MemoryConstrainedSearch.h).
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TRANSFORMS_PROPAGATE_PLANCHEAPEST_H
#define SHARDC_LIB_TRANSFORMS_PROPAGATE_PLANCHEAPEST_H

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/AutoSharding/CostTerms.h"
#include "shardc/AutoSharding/SearchOptions.h"
#include "shardc/Transforms/Passes.h"

#include <memory>

namespace shardc {

/// The options of `propagate` that concern the search.
struct CheapestOptions {
  /// "time" or "bytes".
  std::string objective;
  std::string machine;
  /// Whether `module` was built for rematerialised all-gathers: the weights of
  /// the backward pass are then tensors of their own.
  bool regathers;
  /// Most strategies of all ops together; 0: no limit.
  int64_t maxStrategies;
  SearchOptions search;
  PeakLimit limit;
};

/// Decides the sharding strategy of every op of `module` and the storage
/// layouts of its values. Writes the cost of the plan to the functions
/// (`shardc.cost`, `shardc.starts`) and, by time, the seconds per byte to the
/// module (`shardc.seconds_per_byte`). Fails with an error at its location if
/// there is no plan, the machine cannot be read, a limit is exceeded, or none
/// of the plans tried fits. `steps` belong to the mesh of the module.
mlir::FailureOr<PlanDecisions> planCheapest(ModuleGraph &module,
                                            const CheapestOptions &options,
                                            std::shared_ptr<LayoutSteps> steps);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PROPAGATE_PLANCHEAPEST_H
