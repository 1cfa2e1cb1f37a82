//===- ExpandReshard.h - A reshard as collectives ---------------*- C++ -*-===//

#ifndef SHARDC_LIB_TRANSFORMS_PARTITION_EXPANDRESHARD_H
#define SHARDC_LIB_TRANSFORMS_PARTITION_EXPANDRESHARD_H

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Reshard/ReshardPlanner.h"

namespace shardc {

/// Builds the collectives and slices that `planner` chooses for `reshard`, and
/// returns the new shard. The operand of `reshard` must be a shard of a tensor
/// of type `global`. The ops stand before `reshard` and inherit its cause and
/// its part of the step.
mlir::Value expandReshard(ReshardOp reshard, mlir::RankedTensorType global,
                          const MeshAxes &mesh, ReshardPlanner &planner);

} // namespace shardc

#endif // SHARDC_LIB_TRANSFORMS_PARTITION_EXPANDRESHARD_H
