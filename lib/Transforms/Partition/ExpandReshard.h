//===- ExpandReshard.h - A reshard as collectives ---------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_EXPANDRESHARD_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_EXPANDRESHARD_H

#include "shardc/Reshard/ReshardPlanner.h"

namespace shardc {

/// Builds before `reshard`, whose operand is a shard of a tensor of type
/// `global`, the collectives and slices that `planner` chooses for it; returns
/// the shard that they make. They are of the part of the step of `reshard` and
/// have its cause.
mlir::Value expandReshard(ReshardOp reshard, mlir::RankedTensorType global,
                          const MeshAxes &mesh, ReshardPlanner &planner);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_EXPANDRESHARD_H
