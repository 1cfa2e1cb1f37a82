//===- LowerKernels.h - Kernels to LLVM dialect functions -------*- C++ -*-===//
//
// Stateless; one module at a time, any number of contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELSTOCPU_LOWERKERNELS_H
#define SHARDC_CONVERSION_KERNELSTOCPU_LOWERKERNELS_H

#include "shardc/Conversion/KernelEmitter/KernelModule.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// Turns every `shardc.kernel` of the module's functions into a function
/// `void(ptr buffers, ptr context, i64 begin, i64 end)` of the LLVM dialect in
/// the nested module @kernels. `buffers` has the addresses of the operands,
/// then of the results; `context` has the device's coordinate on each mesh
/// axis, then the seed. Equal kernels share one function. A kernel may have a
/// second function for a group of devices (Analysis/GroupKernels.h):
/// `shardc.group_symbol`, of `shardc.group_devices`, with the operand
/// `shardc.group_shared` if it adds up no results. Each kernel op gets
/// `shardc.symbol`, the function's name, `shardc.extent`, the number of its
/// independent iterations, and `shardc.parts`: the ranges of iterations with
/// the buffers that they touch and the mesh axes, by number, whose coordinates
/// they read. Emits an error for element types that an op does not support.
mlir::LogicalResult lowerKernels(mlir::ModuleOp module);

/// The kernels' second version for multiversioning: the same functions as a
/// module of their own, with vectors of up to 16 lanes, as in AVX-512, in place
/// of 8. For a module after `lowerKernels`, which stays as it is. They have the
/// same iterations and compute the same bits. Null after an error.
mlir::OwningOpRef<mlir::ModuleOp> lowerWideKernels(mlir::ModuleOp module);

/// The pass `--shardc-lower-kernels` around `lowerKernels`.
std::unique_ptr<mlir::Pass> createLowerKernelsPass();

/// Registers the passes of this library for textual pipelines.
void registerShardcConversionPasses();

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELSTOCPU_LOWERKERNELS_H
