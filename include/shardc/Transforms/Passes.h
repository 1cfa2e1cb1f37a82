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

#include "mlir/Pass/Pass.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace shardc {

#define GEN_PASS_DECL
#include "shardc/Transforms/Passes.h.inc"

/// What plans may need, and how that is found out.
struct PeakLimit {
  /// On a device; 0: no limit.
  int64_t bytes = 0;
  /// Takes a module after `propagate` through the phases that decide about
  /// memory; the bytes that each of its functions needs, arguments of the
  /// others included. `regathers`: as the option of that name.
  std::function<llvm::Expected<std::vector<int64_t>>(mlir::ModuleOp propagated,
                                                     bool regathers)>
      getPeaks = {};
};

#define GEN_PASS_REGISTRATION
#include "shardc/Transforms/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_TRANSFORMS_PASSES_H
