//===- MeshSteps.h - The steps between layouts of a mesh --------*- C++ -*-===//
//
// An analysis: the steps between the layouts that the mesh of a module allows,
// for all passes that plan how tensors are moved. It holds as long as the mesh
// does, whatever becomes of the program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_DIALECT_SHARDC_TRANSFORMS_MESHSTEPS_H
#define SHARDC_LIB_DIALECT_SHARDC_TRANSFORMS_MESHSTEPS_H

#include "shardc/Analysis/LayoutGraph.h"
#include "shardc/Analysis/ModuleQueries.h"

namespace shardc {

struct MeshSteps {
  /// `module` has a mesh.
  explicit MeshSteps(mlir::Operation *module)
      : steps(std::make_shared<LayoutSteps>(
            MeshAxes(*getMesh(mlir::cast<mlir::ModuleOp>(module))))) {}

  std::shared_ptr<LayoutSteps> steps;
};

} // namespace shardc

#endif // SHARDC_LIB_DIALECT_SHARDC_TRANSFORMS_MESHSTEPS_H
