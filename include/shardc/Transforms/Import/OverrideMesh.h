//===- OverrideMesh.h - Another mesh for a module ---------------*- C++ -*-===//

#ifndef SHARDC_TRANSFORMS_IMPORT_OVERRIDEMESH_H
#define SHARDC_TRANSFORMS_IMPORT_OVERRIDEMESH_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Replaces the mesh by `spec` ("data=4,model=2"; empty: keep). Axes that
/// annotations, contracts or rules name and `spec` lacks get size 1. An axis
/// of several devices that the module does not have is an error where they name
/// any axis, but for `stageAxis`, which a pipeline adds. A module without a
/// mesh gets `@mesh`, of one device if `spec` is empty.
mlir::FailureOr<MeshOp> overrideMesh(mlir::ModuleOp module,
                                     const std::string &spec,
                                     llvm::StringRef stageAxis = "");

} // namespace shardc

#endif // SHARDC_TRANSFORMS_IMPORT_OVERRIDEMESH_H
