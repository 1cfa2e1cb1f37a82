//===- CompareCheapest.h - What the cheapest plan would cost ----*- C++ -*-===//

#ifndef SHARDC_WHATIF_COMPARECHEAPEST_H
#define SHARDC_WHATIF_COMPARECHEAPEST_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/Report/CommunicationReport.h"

namespace shardc {

/// The plan of a step beside the cheapest one.
struct CheapestPrice {
  mlir::Location loc;
  PlanCost cost;
  /// Sent per device, by this plan and by the cheapest.
  int64_t wireBytes = 0, cheapestWireBytes = 0;
  /// Why the cheapest plan is not known, if it is not.
  std::string error = {};
};

/// Finds out what the train step of `module`, after `collectives` (or its first
/// function), costs by the objective of `options`, and what the cheapest plan
/// would. `propagated` and `differentiated` are the same module earlier; takes
/// the latter through the phases up to `collectives` if `options` do not ask
/// for the cheapest plan anyway. Programs with very many ways to shard are not
/// searched for this. Notes the costs on the step, as `shardc.cost`. nullopt if
/// there is no function, or its machine cannot be read.
std::optional<CheapestPrice> priceCheapest(mlir::ModuleOp module,
                                           mlir::ModuleOp propagated,
                                           mlir::ModuleOp differentiated,
                                           const CompileOptions &options);

/// Says it in a remark at the step, with the flag that gets the cheapest plan.
void remarkOn(const CheapestPrice &price, const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_COMPARECHEAPEST_H
