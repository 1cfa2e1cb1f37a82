//===- MeshSteps.h - The layout graph's edges for one mesh ------*- C++ -*-===//
//
// An analysis that caches the steps between the layouts of the module's mesh,
// for all passes that plan reshards. It stays valid as long as the mesh stays,
// whatever passes do to the program.
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
