//===- Explain.h - Explanations from the IR ---------------------*- C++ -*-===//
//
// Builds explanations from the locations of collectives (#shardc.move), without
// fix-its, which WhatIf/FixIts finds by compiling. Reads the IR only.
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

/// The share of each tensor in the wire bytes that the communication report
/// counts for `collective`. Each is rounded up, so the sum may be larger.
llvm::SmallVector<int64_t> getTensorWireBytes(mlir::Operation *collective);

/// The location to look at first, for a collective without fix-its; its own
/// location if the IR does not tell.
mlir::Location getGuiltyLocation(mlir::Operation *collective);

/// The explanation of a module after `collectives`, with times on `machine`.
/// Emits an error and fails without a mesh. With a pipeline its costs are those
/// of all ranks together, until `setPipelineCosts`.
mlir::FailureOr<Explanation> explain(mlir::ModuleOp module,
                                     const Machine &machine);

/// Gives programs of a pipeline in `explanation` the costs of their ranks, from
/// `planned`, the same module after `memory`: the time until the last rank
/// ends, and the bytes and FLOPs of the rank that has most. Other programs stay
/// as they are.
void setPipelineCosts(Explanation &explanation, mlir::ModuleOp planned,
                      const Machine &machine);

/// Cost of one function after `collectives`.
ProgramCost getProgramCost(mlir::func::FuncOp function, const Machine &machine);

} // namespace shardc

#endif // SHARDC_REPORT_EXPLAIN_H
