//===- MeshSteps.h - The steps between layouts of a mesh --------*- C++ -*-===//
//
// An analysis: the steps between the layouts that the mesh of a module allows,
// for all passes that plan how tensors are moved. It holds as long as the mesh
// does, whatever becomes of the program.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_ANALYSIS_MESHSTEPS_H
#define SHARDC_ANALYSIS_MESHSTEPS_H

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Reshard/LayoutGraph.h"

namespace shardc {

struct MeshSteps {
  /// `module` has a mesh.
  explicit MeshSteps(mlir::Operation *module)
      : steps(std::make_shared<LayoutSteps>(
            getMeshAxes(*getMesh(mlir::cast<mlir::ModuleOp>(module))))) {}

  std::shared_ptr<LayoutSteps> steps;
};

} // namespace shardc

#endif // SHARDC_ANALYSIS_MESHSTEPS_H
