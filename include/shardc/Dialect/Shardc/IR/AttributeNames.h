//===- AttributeNames.h - Names of the dialect's attributes -----*- C++ -*-===//
//
// Every attribute that shardc puts on modules, functions, arguments and ops, by
// its constant: a misspelt one does not compile. docs/Dialect.md has the types
// of those that users write, and says what is checked.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_ATTRIBUTENAMES_H
#define SHARDC_DIALECT_SHARDC_IR_ATTRIBUTENAMES_H

#include "llvm/ADT/StringRef.h"

namespace shardc {

// Of a module.

/// The optimizer, its rate and its schedule.
constexpr llvm::StringLiteral trainingAttrName = "shardc.training";
/// Mesh axes of the logical axes.
constexpr llvm::StringLiteral rulesAttrName = "shardc.rules";
/// What becomes of dimensions that do not divide.
constexpr llvm::StringLiteral unevenAttrName = "shardc.uneven";
/// The mode in which it was partitioned.
constexpr llvm::StringLiteral partitionAttrName = "shardc.partition";
/// What reshards cost, by mesh axis.
constexpr llvm::StringLiteral secondsPerByteAttrName =
    "shardc.seconds_per_byte";
/// Bytes of the arena of a device.
constexpr llvm::StringLiteral arenaBytesAttrName = "shardc.arena_bytes";
/// The GPU that a gpu.module is for: "sm_80".
constexpr llvm::StringLiteral chipAttrName = "shardc.chip";

// Of a function.

/// What the step costs, and what any plan does at least.
constexpr llvm::StringLiteral costAttrName = "shardc.cost";
/// The collectives that its reshards may use.
constexpr llvm::StringLiteral startsAttrName = "shardc.starts";
/// What gathering weights again costs and saves.
constexpr llvm::StringLiteral regatherAttrName = "shardc.regather";
/// Bytes that it needs on a device.
constexpr llvm::StringLiteral peakBytesAttrName = "shardc.peak_bytes";
/// Operations of its GEMMs before it was partitioned.
constexpr llvm::StringLiteral globalMatmulFlopsAttrName =
    "shardc.global_matmul_flops";

// Of an argument or a result of a function.

/// Parameter, state, input, label, …
constexpr llvm::StringLiteral roleAttrName = "shardc.role";
constexpr llvm::StringLiteral shardingAttrName = "shardc.sharding";
/// Of the gradient of a parameter.
constexpr llvm::StringLiteral gradShardingAttrName = "shardc.grad_sharding";
/// Of the optimizer's states of a parameter.
constexpr llvm::StringLiteral stateShardingAttrName = "shardc.state_sharding";
/// A logical axis for each dimension.
constexpr llvm::StringLiteral logicalAxesAttrName = "shardc.logical_axes";
/// The shape before it was partitioned.
constexpr llvm::StringLiteral globalShapeAttrName = "shardc.global_shape";
/// Labels are below this.
constexpr llvm::StringLiteral labelClassesAttrName = "shardc.label_classes";
/// What a result is called.
constexpr llvm::StringLiteral resultAttrName = "shardc.result";
/// Where an argument lies in the arena, in bytes.
constexpr llvm::StringLiteral offsetAttrName = "shardc.offset";

// Of an op.

/// The phase of the step that it belongs to: forward, backward, update.
constexpr llvm::StringLiteral partAttrName = "shardc.part";
/// The mesh axes over which its iteration space is sharded.
constexpr llvm::StringLiteral assignmentAttrName = "shardc.assignment";
/// Which annotations brought the axes of its assignment.
constexpr llvm::StringLiteral originAttrName = "shardc.origin";
/// Why a collective is there.
constexpr llvm::StringLiteral causeAttrName = "shardc.cause";
/// Contracts, also of functions and modules.
constexpr llvm::StringLiteral expectAttrName = "shardc.expect";
/// The region of the source, by name, that contracts speak of.
constexpr llvm::StringLiteral regionAttrName = "shardc.region";
/// The pass that weights are gathered for.
constexpr llvm::StringLiteral gatheredForAttrName = "shardc.gathered_for";
/// The part in which the operand of a reshard is made.
constexpr llvm::StringLiteral madeInAttrName = "shardc.made_in";
/// How a reshard adds up partial values.
constexpr llvm::StringLiteral reductionAttrName = "shardc.reduction";
/// A reduction that the library computes beside a GEMM.
constexpr llvm::StringLiteral byProductAttrName = "shardc.by_product";
/// The op of the global program that it comes from, for the partition check.
constexpr llvm::StringLiteral idAttrName = "shardc.id";
/// How its result lies on the devices, for the partition check.
constexpr llvm::StringLiteral layoutAttrName = "shardc.layout";
/// Where its buffers lie in the arena, in bytes.
constexpr llvm::StringLiteral offsetsAttrName = "shardc.offsets";

// Of a kernel that has been lowered.

/// The function in @kernels.
constexpr llvm::StringLiteral symbolAttrName = "shardc.symbol";
/// Iterations of its outer loop, or blocks of its grid.
constexpr llvm::StringLiteral extentAttrName = "shardc.extent";
/// Threads of a block.
constexpr llvm::StringLiteral threadsAttrName = "shardc.threads";
/// Kernels that it was joined from.
constexpr llvm::StringLiteral partsAttrName = "shardc.parts";

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_ATTRIBUTENAMES_H
