//===- LowerKernelsToGpu.h - Kernels to GPU functions -----------*- C++ -*-===//
//
// Stateless; one module at a time, any number of contexts.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELSTOGPU_LOWERKERNELSTOGPU_H
#define SHARDC_CONVERSION_KERNELSTOGPU_LOWERKERNELSTOGPU_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace shardc {

/// Turns every `shardc.kernel` of the module's functions into a kernel of the
/// nested gpu.module @kernels for `chip`. Its parameters are addresses in
/// global memory, multiples of 16: of the operands, the results, and the
/// context, which has the device's coordinate on each mesh axis, the seed, and
/// with microbatches the run. Equal kernels share one function. Each kernel op
/// gets `shardc.symbol`, the function's name, `shardc.extent`, the blocks of
/// its grid, and `shardc.threads`, the threads of a block: both have one
/// dimension, of exactly these sizes. Results do not depend on the order in
/// which threads run. Emits an error at a kernel with more operands and results
/// than a launch can pass.
mlir::FailureOr<mlir::gpu::GPUModuleOp> lowerKernelsToGpu(mlir::ModuleOp module,
                                                          llvm::StringRef chip);

/// The pass `--shardc-lower-kernels-to-gpu` around `lowerKernelsToGpu`; an
/// empty `chip` leaves the choice to its option.
std::unique_ptr<mlir::Pass> createLowerKernelsToGpuPass(std::string chip = "");

/// `--shardc-convert-to-nvvm`: the functions of a gpu.module as functions of
/// the LLVM and NVVM dialects. They call no others.
std::unique_ptr<mlir::Pass> createConvertToNVVMPass();

/// Registers these passes for textual pipelines.
void registerShardcGpuConversionPasses();

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELSTOGPU_LOWERKERNELSTOGPU_H
