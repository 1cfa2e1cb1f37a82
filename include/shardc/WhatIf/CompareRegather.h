//===- CompareRegather.h - The memory of the other choice -------*- C++ -*-===//

#ifndef SHARDC_WHATIF_COMPAREREGATHER_H
#define SHARDC_WHATIF_COMPAREREGATHER_H

#include "shardc/Pipelines/CompileOptions.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Completes the `shardc.regather` of the functions of `module`, partitioned
/// with `options`, by the peak that `propagated`, the module as it was before,
/// has with the other choice. Takes `propagated` through the phases up to
/// `memory`, if there is a choice at all; what they say of it is dropped, and
/// where they fail the peak stays unknown.
void priceRegather(mlir::ModuleOp module, mlir::ModuleOp propagated,
                   const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_COMPAREREGATHER_H
