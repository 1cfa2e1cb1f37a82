//===- ReshardPermutes.h - One permute away ---------------------*- C++ -*-===//

#ifndef SHARDC_LIB_RESHARD_RESHARDPERMUTES_H
#define SHARDC_LIB_RESHARD_RESHARDPERMUTES_H

#include "shardc/Reshard/ReshardSteps.h"

namespace shardc {

/// Those of `getStepsFrom` that are collective permutes.
std::vector<ReshardStep> getPermutesFrom(const Layout &from,
                                         const LayoutScope &scope,
                                         const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_LIB_RESHARD_RESHARDPERMUTES_H
