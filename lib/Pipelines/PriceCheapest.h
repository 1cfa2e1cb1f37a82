//===- PriceCheapest.h - What the cheapest plan would send ------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_PRICECHEAPEST_H
#define SHARDC_LIB_PIPELINES_PRICECHEAPEST_H

#include "shardc/Analysis/CommunicationReport.h"
#include "shardc/Pipelines/Compile.h"

namespace shardc {

/// The train step of a module, or the first function of one without; null if it
/// has none.
mlir::func::FuncOp getStep(mlir::ModuleOp module);

/// Says, in a remark at the step, what it sends, `report`, what it would send
/// by the cheapest plan, and which flag gets that. `differentiated` is the
/// module before it was partitioned; takes it through the phases up to
/// `collectives`, if `options` do not ask for the cheapest plan anyway.
/// Programs with very many ways to shard are not searched for a remark.
void remarkOnCheapest(const CommunicationReport &report,
                      mlir::ModuleOp differentiated,
                      const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_PRICECHEAPEST_H
