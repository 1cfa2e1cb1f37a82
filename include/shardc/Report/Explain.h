//===- Explain.h - Explanations from the IR ---------------------*- C++ -*-===//
//
// Reads what locations know about collectives (#shardc.move) into explanations.
// Without remedies, which lib/Pipelines finds by compiling. Reads the IR only.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_REPORT_EXPLAIN_H
#define SHARDC_REPORT_EXPLAIN_H

#include "shardc/CostModel/MachineModel.h"
#include "shardc/Report/Explanation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// The explanation of one collective, without its time. `op` is a collective.
ExplainedCollective explainCollective(mlir::Operation *op);

/// What each tensor of `collective` sends of all that the communication report
/// counts for it. Rounded up each, they may add up to more.
llvm::SmallVector<int64_t> getTensorWireBytes(mlir::Operation *collective);

/// Where to look first, of a collective without remedies; its own location if
/// the IR does not say.
mlir::Location getGuiltyLocation(mlir::Operation *collective);

/// The explanation of a module after `collectives`, with times on `machine`.
/// Emits an error and fails without a mesh.
mlir::FailureOr<Explanation> explain(mlir::ModuleOp module,
                                     const Machine &machine);

/// Cost of one function after `collectives`.
ProgramCost getProgramCost(mlir::func::FuncOp function, const Machine &machine);

} // namespace shardc

#endif // SHARDC_REPORT_EXPLAIN_H
