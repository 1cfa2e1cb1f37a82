//===- Passes.h - The passes between shardc's phases ------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td: options structs, create functions
// (`createImportPass(ImportPassOptions)`) and `registerShardcPasses`. Passes
// run on a module, keep no state between runs, and may run in several contexts
// at once.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_TRANSFORMS_PASSES_H
#define SHARDC_TRANSFORMS_PASSES_H

#include "shardc/Transforms/MeasuredPlan.h"

#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace shardc {

class StageCutCache;

#define GEN_PASS_DECL
#include "shardc/Transforms/Passes.h.inc"

/// A limit on the memory of plans, and a way to measure it.
struct PeakLimit {
  /// Bytes of a device; 0 for no limit.
  int64_t bytes = 0;
  /// Takes a module after `propagate` through the phases up to `memory` and
  /// returns the peak of each function in bytes, including the arguments of all
  /// functions. `regathers` is the option `regather`.
  std::function<llvm::Expected<std::vector<int64_t>>(mlir::ModuleOp propagated,
                                                     bool regathers)>
      getPeaks = {};
};

/// A limit on the memory of the ranks of a pipeline, and a way to measure it.
struct RankLimit {
  /// Bytes of a device; 0 for no limit.
  int64_t bytes = 0;
  /// Takes a module after `import`, whose loss has stages. Null: nobody here
  /// compiles plans on trial.
  PlanMeasurer measure = {};
};

/// The pass with a limit on the memory of stages. Cuts without a limit are kept
/// in `cuts`, if it is not null, and taken from there.
std::unique_ptr<mlir::Pass>
createAssignStagesPass(AssignStagesPassOptions options, RankLimit limit,
                       StageCutCache *cuts = nullptr);

#define GEN_PASS_REGISTRATION
#include "shardc/Transforms/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_TRANSFORMS_PASSES_H
