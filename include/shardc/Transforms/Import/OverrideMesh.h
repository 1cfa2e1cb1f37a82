//===- OverrideMesh.h - Another mesh for a module ---------------*- C++ -*-===//

#ifndef SHARDC_TRANSFORMS_IMPORT_OVERRIDEMESH_H
#define SHARDC_TRANSFORMS_IMPORT_OVERRIDEMESH_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/BuiltinOps.h"

namespace shardc {

/// Replaces the mesh by `spec` ("data=4,model=2"; empty: keep). Axes that
/// annotations, contracts or rules name and `spec` lacks get size 1. A module
/// without a mesh gets `@mesh`, of one device if `spec` is empty.
mlir::FailureOr<MeshOp> overrideMesh(mlir::ModuleOp module,
                                     const std::string &spec);

} // namespace shardc

#endif // SHARDC_TRANSFORMS_IMPORT_OVERRIDEMESH_H
