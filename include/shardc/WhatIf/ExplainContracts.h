//===- ExplainContracts.h - Broken contracts with fix-its -------*- C++ -*-===//

#ifndef SHARDC_WHATIF_EXPLAINCONTRACTS_H
#define SHARDC_WHATIF_EXPLAINCONTRACTS_H

#include "shardc/Pipelines/CompileOptions.h"
#include "shardc/WhatIf/StageLabels.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Checks the contracts on collectives of `module`, after `collectives`. A
/// broken one is an error, with the explanation of every collective that breaks
/// it. The explanations have fix-its, found by trial compilations of
/// `imported`, the module after `import`, which is left as it is; `source` is
/// of the same module before `import`.
mlir::LogicalResult checkContracts(mlir::ModuleOp module,
                                   mlir::ModuleOp imported,
                                   const SourceAnnotations &source,
                                   const CompileOptions &options);

} // namespace shardc

#endif // SHARDC_WHATIF_EXPLAINCONTRACTS_H
