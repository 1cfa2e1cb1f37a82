//===- AttributeNames.h - Names of the dialect's attributes -----*- C++ -*-===//
//
// A constant for every attribute that shardc sets on modules, functions,
// arguments and ops: a misspelt one does not compile. docs/Dialect.md has the
// types and the checks of those that users write.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_ATTRIBUTENAMES_H
#define SHARDC_DIALECT_SHARDC_IR_ATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace shardc {

// Of a module.

/// The optimizer, its rate and its schedule.
constexpr llvm::StringLiteral trainingAttrName = "shardc.training";
/// The mesh axis and the schedule of a pipeline.
constexpr llvm::StringLiteral pipelineAttrName = "shardc.pipeline";
/// The policy of recomputation: "none", "layer", "stage" or "auto".
constexpr llvm::StringLiteral recomputeAttrName = "shardc.recompute";
/// Bytes of the arena of a device if nothing were recomputed, by rank of the
/// pipeline, or one number.
constexpr llvm::StringLiteral bytesWithoutAttrName =
    "shardc.bytes_without_recomputation";
/// Mesh axes of the logical axes.
constexpr llvm::StringLiteral rulesAttrName = "shardc.rules";
/// The policy for dimensions that do not divide: pad or error.
constexpr llvm::StringLiteral unevenAttrName = "shardc.uneven";
/// The planner that partitioned it: "follow" or "cheapest".
constexpr llvm::StringLiteral partitionAttrName = "shardc.partition";
/// Seconds per byte of reshards, by mesh axis.
constexpr llvm::StringLiteral secondsPerByteAttrName =
    "shardc.seconds_per_byte";
/// Why the module has no program that makes predictions.
constexpr llvm::StringLiteral noPredictionAttrName = "shardc.no_prediction";
/// Of a module that was refused: no plan that was tried fits the memory of a
/// device.
constexpr llvm::StringLiteral exceedsMemoryAttrName = "shardc.exceeds_memory";
/// Bytes of the arena of a device.
constexpr llvm::StringLiteral arenaBytesAttrName = "shardc.arena_bytes";
/// The GPU that a gpu.module is for: "sm_80".
constexpr llvm::StringLiteral chipAttrName = "shardc.chip";

// Of a function.

/// The cost of the step, and a lower bound of all plans.
constexpr llvm::StringLiteral costAttrName = "shardc.cost";
/// The collectives that its reshards may use.
constexpr llvm::StringLiteral startsAttrName = "shardc.starts";
/// The cost and saving of rematerialised all-gathers.
constexpr llvm::StringLiteral regatherAttrName = "shardc.regather";
/// Bytes that it needs on a device.
constexpr llvm::StringLiteral peakBytesAttrName = "shardc.peak_bytes";
/// Floating-point operations of its GEMMs before it was partitioned.
constexpr llvm::StringLiteral globalMatmulFlopsAttrName =
    "shardc.global_matmul_flops";

/// Of a rank of a pipeline: the program that it is part of, "train_step", …
constexpr llvm::StringLiteral programAttrName = "shardc.program";
/// The rank of the pipeline that runs it.
constexpr llvm::StringLiteral rankAttrName = "shardc.pipeline_rank";
/// Its tasks in their order: "0F0,0F1,0B0,0B1".
constexpr llvm::StringLiteral tasksAttrName = "shardc.tasks";

// Of a sharding constraint.

/// It is one of a shard_map of JAX: "in" or "out", or the collective that it
/// fixes: "psum".
constexpr llvm::StringLiteral manualAttrName = "shardc.manual";

// Of an argument or a result of a function.

/// Parameter, state, input, label, …
constexpr llvm::StringLiteral roleAttrName = "shardc.role";
constexpr llvm::StringLiteral shardingAttrName = "shardc.sharding";
/// The sharding of a parameter's gradient.
constexpr llvm::StringLiteral gradShardingAttrName = "shardc.grad_sharding";
/// The sharding of a parameter's optimizer states.
constexpr llvm::StringLiteral stateShardingAttrName = "shardc.state_sharding";
/// A logical axis for each dimension.
constexpr llvm::StringLiteral logicalAxesAttrName = "shardc.logical_axes";
/// The shape before it was partitioned.
constexpr llvm::StringLiteral globalShapeAttrName = "shardc.global_shape";
/// The rows that are data, of an argument or result that has more: those behind
/// are padding, with which microbatches become equal.
constexpr llvm::StringLiteral unpaddedRowsAttrName = "shardc.unpadded_rows";
/// The number of classes: labels are below it.
constexpr llvm::StringLiteral labelClassesAttrName = "shardc.label_classes";
/// The name of a result.
constexpr llvm::StringLiteral resultAttrName = "shardc.result";
/// The number of the argument in the program of all ranks of a pipeline.
constexpr llvm::StringLiteral numberAttrName = "shardc.number";
/// The place of an argument in the arena, in bytes.
constexpr llvm::StringLiteral offsetAttrName = "shardc.offset";

// Of an op.

/// The phase of the step that it belongs to: forward, backward, update.
constexpr llvm::StringLiteral partAttrName = "shardc.part";
/// The stage of the pipeline that it belongs to.
constexpr llvm::StringLiteral stageAttrName = "shardc.stage";
/// The task of the stage that it belongs to: its letter, "F"; in the program of
/// a rank also stage and microbatch, "1F0".
constexpr llvm::StringLiteral taskAttrName = "shardc.task";
/// It repeats an op of the forward pass in the backward pass.
constexpr llvm::StringLiteral recomputedAttrName = "shardc.recomputed";
/// The op's sharding strategy: mesh axes per factor of its rule.
constexpr llvm::StringLiteral strategyAttrName = "shardc.strategy";
/// Its former name, read for one release.
constexpr llvm::StringLiteral formerStrategyAttrName = "shardc.assignment";
/// The annotations that the axes of its strategy came from.
constexpr llvm::StringLiteral originAttrName = "shardc.origin";
/// The cause of a collective.
constexpr llvm::StringLiteral causeAttrName = "shardc.cause";
/// Contracts, also of functions and modules.
constexpr llvm::StringLiteral expectAttrName = "shardc.expect";
/// The named region of the source that contracts refer to.
constexpr llvm::StringLiteral regionAttrName = "shardc.region";
/// The pass that weights are gathered for.
constexpr llvm::StringLiteral gatheredForAttrName = "shardc.gathered_for";
/// The part of the step that makes the operand of a reshard.
constexpr llvm::StringLiteral madeInAttrName = "shardc.made_in";
/// How a reshard combines partial values: sum or max.
constexpr llvm::StringLiteral reductionAttrName = "shardc.reduction";
/// A reduction that the library computes beside a GEMM.
constexpr llvm::StringLiteral byProductAttrName = "shardc.by_product";
/// The op of the global program that it implements, for the partition check.
constexpr llvm::StringLiteral idAttrName = "shardc.id";
/// The layout of its result, for the partition check.
constexpr llvm::StringLiteral layoutAttrName = "shardc.layout";
/// The places of its buffers in the arena, in bytes.
constexpr llvm::StringLiteral offsetsAttrName = "shardc.offsets";

// Of a kernel that has been lowered.

/// The function in @kernels.
constexpr llvm::StringLiteral symbolAttrName = "shardc.symbol";
/// The function in @kernels for a group of devices, their number, and the
/// operand that is the same on all of them; without it, results are added up.
constexpr llvm::StringLiteral groupSymbolAttrName = "shardc.group_symbol";
constexpr llvm::StringLiteral groupDevicesAttrName = "shardc.group_devices";
constexpr llvm::StringLiteral groupSharedAttrName = "shardc.group_shared";
/// Iterations of its outer loop, or blocks of its grid.
constexpr llvm::StringLiteral extentAttrName = "shardc.extent";
/// Threads of a block.
constexpr llvm::StringLiteral threadsAttrName = "shardc.threads";
/// Kernels that it was joined from.
constexpr llvm::StringLiteral partsAttrName = "shardc.parts";

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_ATTRIBUTENAMES_H
