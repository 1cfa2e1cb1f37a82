//===- ReshardPermutes.h - The collective permutes out of a layout --------===//

#ifndef SHARDC_LIB_RESHARD_RESHARDPERMUTES_H
#define SHARDC_LIB_RESHARD_RESHARDPERMUTES_H

#include "shardc/Reshard/ReshardSteps.h"

namespace shardc {

/// The steps of `getStepsFrom` that are collective permutes.
std::vector<ReshardStep> getPermutesFrom(const Layout &from,
                                         const LayoutScope &scope,
                                         const MeshAxes &mesh);

} // namespace shardc

#endif // SHARDC_LIB_RESHARD_RESHARDPERMUTES_H
