//===- CompareRegather.h - The memory of the other choice -------*- C++ -*-===//

#ifndef SHARDC_WHATIF_COMPAREREGATHER_H
#define SHARDC_WHATIF_COMPAREREGATHER_H

#include "shardc/Pipelines/CompileOptions.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Completes `shardc.regather` of the functions of `module`, partitioned with
/// `options`, by the planned peak of the other choice: rematerialised
/// all-gathers, or weights held between the passes. If there is a choice, takes
/// `propagated`, the module before `partition`, through the phases up to
/// `memory`. Diagnostics are dropped; if a phase fails, the peak stays unknown.
void compareRegather(mlir::ModuleOp module, mlir::ModuleOp propagated,
                     const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_COMPAREREGATHER_H
