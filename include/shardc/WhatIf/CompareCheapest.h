//===- CompareCheapest.h - Compares a plan with the cheapest one ----------===//

#ifndef SHARDC_WHATIF_COMPARECHEAPEST_H
#define SHARDC_WHATIF_COMPARECHEAPEST_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

namespace shardc {

/// The plan of a step beside the one of `--partition=cheapest`.
struct CheapestComparison {
  mlir::Location loc;
  /// The estimates that reports show for the two.
  PlanEstimate own, cheapest;
  /// The result of the search, if there was one.
  std::optional<PlanCost> search = {};
  /// Why there is no cheapest plan, if there is none.
  std::string error = {};
};

/// Completes `comparison`, which has the estimate of the plan in use, with the
/// plan of `--partition=cheapest` of `differentiated`, a module before
/// `propagate`; that is compiled on trial. Programs with very many sharding
/// strategies are not searched.
void findCheapest(mlir::ModuleOp differentiated, CompileOptions options,
                  CheapestComparison &comparison);

/// Compares the step of `module`, after `memory`, with the plan of
/// `--partition=cheapest`, by the estimates of reports. `differentiated` is the
/// same module before `propagate`; it is compiled on trial unless `options` ask
/// for the cheapest plan anyway. Notes both costs on the step, as
/// `shardc.cost`, unless `propagate` did. nullopt if there is no function.
std::optional<CheapestComparison>
compareCheapest(mlir::ModuleOp module, mlir::ModuleOp differentiated,
                const CompileOptions &options);

/// Emits a remark at the step, with the flag that selects the cheapest plan.
void remarkOn(const CheapestComparison &comparison,
              const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_COMPARECHEAPEST_H
