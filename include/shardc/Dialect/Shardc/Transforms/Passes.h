//===- Passes.h - The passes between shardc's phases ------------*- C++ -*-===//
//
// Declarations of the passes in Passes.td: options structs, create functions
// (`createImportPass(ImportPassOptions)`) and `registerShardcPasses`. Passes
// run on a module, keep no state between runs, and may run in several contexts
// at once.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_TRANSFORMS_PASSES_H
#define SHARDC_DIALECT_SHARDC_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace shardc {

#define GEN_PASS_DECL
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_TRANSFORMS_PASSES_H
