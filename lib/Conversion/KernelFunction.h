//===- KernelFunction.h - One kernel as a function --------------*- C++ -*-===//

#ifndef SHARDC_LIB_CONVERSION_KERNELFUNCTION_H
#define SHARDC_LIB_CONVERSION_KERNELFUNCTION_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Builds function `name` at the end of `functions` for `kernel`, in the LLVM,
/// scf, arith, math and vector dialects; returns the kernel's extent.
int64_t buildKernelFunction(KernelOp kernel, MeshOp mesh,
                            mlir::ModuleOp functions, llvm::StringRef name);

/// Converts what `buildKernelFunction` built to the LLVM dialect alone.
mlir::LogicalResult convertToLLVMDialect(mlir::ModuleOp functions);

} // namespace shardc

#endif // SHARDC_LIB_CONVERSION_KERNELFUNCTION_H
