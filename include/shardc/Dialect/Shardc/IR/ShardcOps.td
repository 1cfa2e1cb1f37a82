//===- ShardcOps.td - All ops of the shardc dialect --------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcCoreOps.td"
include "shardc/Dialect/Shardc/IR/ShardcCompositeOps.td"
include "shardc/Dialect/Shardc/IR/ShardcShardingOps.td"
include "shardc/Dialect/Shardc/IR/ShardcCollectiveOps.td"
include "shardc/Dialect/Shardc/IR/ShardcKernelOps.td"
include "shardc/Dialect/Shardc/IR/ShardcExpectAttrs.td"
include "shardc/Dialect/Shardc/IR/ShardcMoveAttrs.td"
include "shardc/Dialect/Shardc/IR/ShardcPlanAttrs.td"
include "shardc/Dialect/Shardc/IR/ShardcMicrobatchOps.td"
include "shardc/Dialect/Shardc/IR/ShardcPipelineOps.td"

#endif
