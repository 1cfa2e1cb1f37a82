//===- EmulateGrid.h - GPU kernels as loops on the CPU ----------*- C++ -*-===//
//
// For tests: emulates the threads of a GPU, one after the other. Stateless; one
// module at a time, any number of contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELSTOGPU_EMULATEGRID_H
#define SHARDC_CONVERSION_KERNELSTOGPU_EMULATEGRID_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// Lowers the kernels of the module as `lowerKernelsToGpu` does, then turns
/// grids into loops. The functions have the interface of `lowerKernels`, and
/// their iterations are the blocks. Between two barriers of a block each thread
/// runs alone, in order. Arithmetic and the order of sums are those of a GPU.
/// Accesses must be aligned as on a GPU: one that is not ends the process.
mlir::LogicalResult lowerKernelsToEmulation(mlir::ModuleOp module);

/// The pass `--shardc-emulate-grid` around `lowerKernelsToEmulation`.
std::unique_ptr<mlir::Pass> createEmulateGridPass();

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELSTOGPU_EMULATEGRID_H
