//===- EmulateGrid.h - Kernels for a GPU as loops on the CPU ----*- C++ -*-===//
//
// For tests: what a GPU would compute, thread by thread, without one.
// Stateless; one module at a time, any number of contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELSTOGPU_EMULATEGRID_H
#define SHARDC_CONVERSION_KERNELSTOGPU_EMULATEGRID_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// Lowers the kernels of the module as `lowerKernelsToGpu` does, then turns
/// grids into loops: the functions have the interface of `lowerKernels`, their
/// iterations are the blocks, and between two points where the threads of a
/// block meet each thread runs alone, in order. What is computed and in which
/// order it is added up is what a GPU does. Accesses must be aligned as on a
/// GPU: one that is not ends the process.
mlir::LogicalResult lowerKernelsToEmulation(mlir::ModuleOp module);

/// The pass `--shardc-emulate-grid` around `lowerKernelsToEmulation`.
std::unique_ptr<mlir::Pass> createEmulateGridPass();

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELSTOGPU_EMULATEGRID_H
