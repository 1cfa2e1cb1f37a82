//===- DistinctKernels.h - One function for equal kernels -------*- C++ -*-===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_DISTINCTKERNELS_H
#define SHARDC_CONVERSION_KERNELEMITTER_DISTINCTKERNELS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Builds the function `name` of a kernel and adds to `attributes` what calls
/// of it must know.
using BuildKernel = llvm::function_ref<mlir::LogicalResult(
    KernelOp kernel, llvm::StringRef name, mlir::NamedAttrList &attributes)>;

/// What tells a kernel from others that compute the same, if anything.
using DistinguishKernel = llvm::function_ref<std::string(KernelOp kernel)>;

/// Calls `build` for the first of all kernels that compute the same, and are
/// not told apart, in the order of the module, and sets `shardc.symbol`, the
/// function's name, and the attributes that it returns on all of them. Fails
/// when `build` does.
mlir::LogicalResult buildDistinctKernels(mlir::ModuleOp module,
                                         BuildKernel build,
                                         DistinguishKernel distinguish = {});

/// Erases what an earlier lowering left in the module under the name of the
/// kernels' module, if anything; then returns the mesh, or emits an error if
/// there is none or a kernel has tensors without elements.
mlir::FailureOr<MeshOp> prepareKernelModule(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_DISTINCTKERNELS_H
