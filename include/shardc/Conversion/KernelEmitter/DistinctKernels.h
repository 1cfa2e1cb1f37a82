//===- DistinctKernels.h - One function for equal kernels -------*- C++ -*-===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_DISTINCTKERNELS_H
#define SHARDC_CONVERSION_KERNELEMITTER_DISTINCTKERNELS_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Builds the function `name` of a kernel and adds to `attributes` the facts
/// that its callers must know.
using BuildKernel = llvm::function_ref<mlir::LogicalResult(
    KernelOp kernel, llvm::StringRef name, mlir::NamedAttrList &attributes)>;

/// A text that distinguishes a kernel from others that compute the same; empty
/// if nothing does.
using DistinguishKernel = llvm::function_ref<std::string(KernelOp kernel)>;

/// Calls `build` once for all kernels that compute the same and have the same
/// distinguishing text, in the order of the module. Sets `shardc.symbol`, the
/// function's name, and the attributes of `build` on all of them. Fails when
/// `build` does.
mlir::LogicalResult buildDistinctKernels(mlir::ModuleOp module,
                                         BuildKernel build,
                                         DistinguishKernel distinguish = {});

/// Erases the result of an earlier lowering under the name of the kernels'
/// module, and what it has set on kernels. Returns the mesh, or emits an error
/// if there is none or a kernel has tensors without elements.
mlir::FailureOr<MeshOp> prepareKernelModule(mlir::ModuleOp module);

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_DISTINCTKERNELS_H
