//===- EmitMemoryError.h - Plans that a device cannot hold ------*- C++ -*-===//

#ifndef SHARDC_TRANSFORMS_EMITMEMORYERROR_H
#define SHARDC_TRANSFORMS_EMITMEMORYERROR_H

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

namespace shardc {

/// An error at `module`: no plan fits the memory of a device. The module is
/// marked, since drivers have an exit code for that.
inline mlir::InFlightDiagnostic emitMemoryError(mlir::ModuleOp module) {
  module->setAttr(exceedsMemoryAttrName,
                  mlir::UnitAttr::get(module.getContext()));
  return module.emitError();
}

} // namespace shardc

#endif // SHARDC_TRANSFORMS_EMITMEMORYERROR_H
