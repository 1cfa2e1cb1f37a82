//===- LayoutAttributes.h - Layouts from attributes and back ----*- C++ -*-===//
//
// Partitioners compute with layouts of numbered axes (Sharding/Layout.h), the
// IR holds sharding attributes with names. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_LAYOUTATTRIBUTES_H
#define SHARDC_ANALYSIS_LAYOUTATTRIBUTES_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Sharding/Layout.h"

namespace shardc {

/// The axes of `mesh` in declaration order. The axis of a pipeline's stages has
/// size 1: as far as `collectives`, a program is that of the devices of a
/// stage.
MeshAxes getMeshAxes(MeshOp mesh);

/// The layout that `sharding` means; its axes exist in `mesh`.
Layout getLayout(ShardingAttr sharding, const MeshAxes &mesh);

/// The closed sharding with the axes of `layout`.
ShardingAttr getSharding(const Layout &layout, const MeshAxes &mesh,
                         mlir::FlatSymbolRefAttr meshName);

/// The axes numbers as attributes.
llvm::SmallVector<mlir::StringAttr> getAxisNames(llvm::ArrayRef<int> axes,
                                                 const MeshAxes &mesh,
                                                 mlir::MLIRContext *context);

} // namespace shardc

#endif // SHARDC_ANALYSIS_LAYOUTATTRIBUTES_H
