//===- GpuKernelFunction.h - One kernel as a gpu.func -----------*- C++ -*-===//

#ifndef SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUKERNELFUNCTION_H
#define SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUKERNELFUNCTION_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace shardc {

/// The grid of a kernel; x alone is used.
struct GpuGrid {
  int64_t blocks, threads;
};

/// The facts besides its body on which a kernel's function depends: the
/// operands that do not start at a multiple of 16 bytes.
std::string getAlignmentKey(KernelOp kernel);

/// Builds function `name` at the end of `functions` for `kernel`, in the gpu,
/// LLVM, scf, arith, math and vector dialects. Emits an error at the kernel if
/// it has more buffers than a launch can pass.
mlir::FailureOr<GpuGrid>
buildGpuKernelFunction(KernelOp kernel, MeshOp mesh,
                       mlir::gpu::GPUModuleOp functions, llvm::StringRef name);

/// Converts the functions of `buildGpuKernelFunction` to the LLVM and NVVM
/// dialects.
mlir::LogicalResult convertToNVVMDialect(mlir::gpu::GPUModuleOp functions);

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELSTOGPU_GPUKERNELFUNCTION_H
