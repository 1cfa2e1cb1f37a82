//===- PhaseContracts.h - Checks of the contracts of phases -----*- C++ -*-===//
//
// One check per phase, for the phase table. A broken contract is a fault of the
// compiler, not of the user: the messages name the phase and the op.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_PIPELINES_PHASECONTRACTS_H
#define SHARDC_LIB_PIPELINES_PHASECONTRACTS_H

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

mlir::LogicalResult verifyImported(mlir::ModuleOp module);
mlir::LogicalResult verifyDifferentiated(mlir::ModuleOp module);
mlir::LogicalResult verifyPropagated(mlir::ModuleOp module);
mlir::LogicalResult verifyPartitioned(mlir::ModuleOp module);
mlir::LogicalResult verifyOutlined(mlir::ModuleOp module);
mlir::LogicalResult verifyScheduled(mlir::ModuleOp module);
mlir::LogicalResult verifyPlanned(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_LIB_PIPELINES_PHASECONTRACTS_H
