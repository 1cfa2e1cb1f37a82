//===- ShardcMoveAttrs.td - Where ops come from and why data moves -----===//
//
// Metadata of fused locations: it follows an op through every phase, takes no
// part in what the compiler decides, and is printed with
// --mlir-print-debuginfo. docs/Explain.md shows what is made of it.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCMOVEATTRS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCMOVEATTRS_TD

include "shardc/Dialect/Shardc/IR/ShardcAttrs.td"

def Shardc_SourceAttr : Shardc_Attr<"Source", "source"> {
  let summary = "What the user wrote at a location";
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
    is the origin: a search chose it. `through` has the locations of the ops
    between the annotation and the end of the move, the last few of them.

    `#shardc.origin<axis = "data", name = "x", at = loc("mlp.mlir":7:7)>`
  }];
  let parameters = (ins "::mlir::StringAttr":$axis, "::mlir::StringAttr":$name,
                        OptionalParameter<"::mlir::LocationAttr">:$at,
                        OptionalParameter<"::mlir::ArrayAttr">:$through);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Shardc_MoveEndAttr : Shardc_Attr<"MoveEnd", "move_end"> {
  let summary = "What made a value that moves, or what wanted it";
  let description = [{
    `op` is what the user wrote: "linear", the role of an argument ("parameter",
    "state", "input", "label"), "update", or "rest" where a result rests. `part`
    is that of the step. `arguments` names the function's arguments among the
    op's operands. `origins` has an entry for each axis that the move takes away
    (producer), or puts to another use (consumer).
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
  let summary = "What gathering weights again for the backward pass costs";
  let description = [{
    `shardc.regather` of a function whose forward pass gathers weights that its
    backward pass uses too. Gathering them again, instead of holding them from
    one pass to the other, sends `wire_bytes` more bytes per device and step;
    `held_bytes` are those of the copies that a device holds otherwise. `taken`
    says whether the program gathers again; `other_peak_bytes` is the planned
    peak of the module with the other choice, where somebody has compiled it.

    `#shardc.regather<taken = false, wire_bytes = 12582912, held_bytes = 16777216>`
  }];
  let parameters = (ins "bool":$taken, "int64_t":$wire_bytes,
                        "int64_t":$held_bytes,
                        OptionalParameter<"std::optional<int64_t>">:$other_peak_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
