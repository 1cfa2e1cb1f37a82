//===- CompareCheapest.h - What the cheapest plan would cost ----*- C++ -*-===//

#ifndef SHARDC_WHATIF_COMPARECHEAPEST_H
#define SHARDC_WHATIF_COMPARECHEAPEST_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Transforms/Propagate/PlanEstimate.h"

namespace shardc {

/// The plan of a step beside the one of `--partition=cheapest`.
struct CheapestComparison {
  mlir::Location loc;
  /// What the report says of the two.
  PlanEstimate own, cheapest;
  /// What a search says of the plan that it found, if it was asked.
  std::optional<PlanCost> search = {};
  /// Why the cheapest plan is not known, if it is not.
  std::string error = {};
};

/// Finds out what the step of `module`, after `memory`, takes by the report,
/// and what it would with `--partition=cheapest`. `differentiated` is the same
/// module before `propagate`; it is compiled on trial if `options` do not ask
/// for the cheapest plan anyway. Programs with very many ways to shard are not
/// searched for this. Notes both costs on the step, as `shardc.cost`, unless
/// `propagate` did. nullopt if there is no function.
std::optional<CheapestComparison>
compareCheapest(mlir::ModuleOp module, mlir::ModuleOp differentiated,
                const CompileOptions &options);

/// Says it in a remark at the step, with the flag that gets the cheapest plan.
void remarkOn(const CheapestComparison &comparison,
              const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_COMPARECHEAPEST_H
