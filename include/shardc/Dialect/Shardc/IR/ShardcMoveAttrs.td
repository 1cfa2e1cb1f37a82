//===- ShardcMoveAttrs.td - Provenance of ops and causes of moves ------===//
//
// Metadata of fused locations. It follows an op through every phase, has no
// influence on decisions of the compiler, and is printed with
// --mlir-print-debuginfo. docs/Explain.md shows the explanations made from it.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCMOVEATTRS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCMOVEATTRS_TD

include "shardc/Dialect/Shardc/IR/ShardcAttrs.td"

def Shardc_SourceAttr : Shardc_Attr<"Source", "source"> {
  let summary = "The user's op or argument at a location";
  let description = [{
    `differentiate` puts it on the location of every op made from an op of the
    loss function, and of every argument: the op (or the role of the argument),
    the region it belongs to, the sharding it was annotated with, the contracts
    on its value.

    `#shardc.source<op = "linear", region = "tower">`
  }];
  let parameters = (ins "::mlir::StringAttr":$op,
                        OptionalParameter<"::mlir::StringAttr">:$region,
                        OptionalParameter<"::shardc::ShardingAttr">:$sharding,
                        OptionalParameter<"::mlir::ArrayAttr">:$expect);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Shardc_OriginAttr : Shardc_Attr<"Origin", "origin"> {
  let summary = "The annotation that put an axis on a value";
  let description = [{
    `name` is the annotated argument or "constraint". Without `at` no annotation
    is the origin: a search chose the axis. `through` has the locations of the
    last few ops between the annotation and the end of the move.

    `#shardc.origin<axis = "data", name = "x", at = loc("mlp.mlir":7:7)>`
  }];
  let parameters = (ins "::mlir::StringAttr":$axis, "::mlir::StringAttr":$name,
                        OptionalParameter<"::mlir::LocationAttr">:$at,
                        OptionalParameter<"::mlir::ArrayAttr">:$through);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Shardc_MoveEndAttr : Shardc_Attr<"MoveEnd", "move_end"> {
  let summary = "One end of a move: the producer or the consumer of the value";
  let description = [{
    `op` is the user's op, such as "linear", the role of an argument
    ("parameter", "state", "input", "label"), "update", or "rest" for the storage
    sharding of a result. `part` is the part of the step. `arguments` names the
    function's arguments among the op's operands. `origins` has an entry for
    each axis that the move removes (producer) or adds (consumer).
  }];
  let parameters = (ins "::mlir::StringAttr":$op,
                        OptionalParameter<"::shardc::PartAttr">:$part,
                        "::mlir::LocationAttr":$at,
                        "::mlir::ArrayAttr":$arguments,
                        "::mlir::ArrayAttr":$origins);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Shardc_MoveAttr : Shardc_Attr<"Move", "move"> {
  let summary = "Why a tensor moves";
  let description = [{
    The metadata on the location of a `shardc.reshard` and of the collectives
    that it becomes: the tensor by the name the user knows it by, its global
    type, the shardings before and after, and the two ends. `id` tells the
    reshards of a function apart.
  }];
  let parameters = (ins "int64_t":$id, "::mlir::StringAttr":$tensor,
                        "::mlir::RankedTensorType":$type,
                        "::shardc::ShardingAttr":$from, "::shardc::ShardingAttr":$to,
                        "::shardc::MoveEndAttr":$producer,
                        "::shardc::MoveEndAttr":$consumer);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Shardc_RegatherAttr : Shardc_Attr<"Regather", "regather"> {
  let summary = "The cost of rematerialised all-gathers of weights";
  let description = [{
    `shardc.regather` of a function whose forward pass gathers weights that its
    backward pass uses too (FSDP2's `reshard_after_forward`). Gathering them
    again for the backward pass sends `wire_bytes` more bytes per device and
    step; holding them takes `held_bytes` on a device between the passes.
    `taken` says whether the program gathers again. `other_peak_bytes` is the
    planned peak of the module with the other choice, once it was compiled on
    trial.

    `#shardc.regather<taken = false, wire_bytes = 12582912, held_bytes = 16777216>`
  }];
  let parameters = (ins "bool":$taken, "int64_t":$wire_bytes,
                        "int64_t":$held_bytes,
                        OptionalParameter<"std::optional<int64_t>">:$other_peak_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
