//===- BrokenPasses.h - Passes that break the IR ----------------*- C++ -*-===//

#ifndef SHARDC_PIPELINES_BROKENPASSES_H
#define SHARDC_PIPELINES_BROKENPASSES_H

#include "shardc/Pipelines/Phases.h"

namespace shardc {

/// Makes `manager`, whose verifier is on, name a pass that leaves IR that does
/// not verify: a broken contract, of which `state` learns. `state` is borrowed
/// until the manager is gone.
void reportBrokenPasses(mlir::PassManager &manager, CompileState &state);

} // namespace shardc

#endif // SHARDC_PIPELINES_BROKENPASSES_H
