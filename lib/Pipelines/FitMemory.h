//===- FitMemory.h - The cheapest plan that fits ----------------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINES_FITMEMORY_H
#define SHARDC_LIB_PIPELINES_FITMEMORY_H

#include "shardc/Pipelines/Compile.h"

#include "mlir/Pass/Pass.h"

namespace shardc {

/// Propagates at the least cost of plans that need no more than
/// `options.deviceMemory` on a device. Plans are tried in the order of what
/// they cost: the cheapest, and then, as long as none fits after `schedule` and
/// `memory`, those that are the cheapest if memory has a price, which is raised
/// until one fits and then lowered as far as one does. A plan between two of
/// these may fit and cost less, so `shardc.cost` has the bound of all plans. An
/// error at the module if none fits.
std::unique_ptr<mlir::Pass> createFitMemoryPass(const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_FITMEMORY_H
