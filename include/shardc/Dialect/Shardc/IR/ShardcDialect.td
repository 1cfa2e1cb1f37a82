//===- ShardcDialect.td - The shardc dialect ---------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCDIALECT_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCDIALECT_TD

include "mlir/IR/OpBase.td"

def Shardc_Dialect : Dialect {
  let name = "shardc";
  let cppNamespace = "::shardc";
  let summary = "A training step over global tensors, its sharding and its partitioned form.";
  let description = [{
    A module holds one `shardc.mesh`, a loss function over *global* tensors
    (`func.func` whose arguments carry roles and shardings) and a training
    description. The dialect has five families of ops: the tensor core that
    steps are made of, composites that decompose into it, sharding ops
    (`sharding_constraint`, `reshard`), collectives over named mesh axes on
    local tensors, and the outlined compute of the lower phases.

    Attributes the dialect defines on functions, arguments and results:

    | attribute | on | meaning |
    |---|---|---|
    | `shardc.role` | argument | `#shardc.parameter`, `#shardc.state`, `#shardc.copy`, `#shardc.input` or `#shardc.label` |
    | `shardc.sharding` | argument, result | `#shardc.sharding`: the storage sharding |
    | `shardc.logical_axes` | argument | one logical name (or "") per dimension; `shardc.rules` maps them |
    | `shardc.state_sharding` | argument | sharding of the optimizer states of this parameter |
    | `shardc.grad_sharding` | argument | sharding of the gradient of this parameter |
    | `shardc.label_classes` | label argument, after `differentiate` | labels are in [0, this) |
    | `shardc.unpadded_rows` | input, label, result by rows, after `differentiate` | the rows that are data, where the batch is padded for microbatches; those behind are padding |
    | `shardc.rules` | module | dictionary from logical name to a list of mesh axes |
    | `shardc.uneven` | module | "pad" (default) or "error" for dimensions that do not divide |
    | `shardc.training` | module | `#shardc.training`: loss, optimizer and schedule |
    | `shardc.no_prediction` | module, after `differentiate` | why there is no program `predict`, with the place |
    | `shardc.pipeline` | module | `#shardc.pipeline`: mesh axis and schedule of a pipeline |
    | `shardc.stage` | op of the loss function; after `differentiate` any op | the stage of the pipeline that the op belongs to |
    | `shardc.task` | op, after `kernels` | the letter of the stage's task that the op belongs to; after `schedule` stage, letter and microbatch: "1F0" |
    | `shardc.program`, `shardc.pipeline_rank`, `shardc.tasks` | function, after `schedule` | of a rank of a pipeline: the program that it is part of, the rank, its tasks in their order |
    | `shardc.number` | argument, after `schedule` | of a rank of a pipeline: its number in the program of all ranks |
    | `shardc.expect` | module, function, argument, op | list of contracts, see below |
    | `shardc.manual` | `shardc.sharding_constraint` | it is one of a [`shard_map` of JAX](JAX.md#shard_map): "in" or "out", or the collective that it fixes: "psum" |
    | `shardc.region` | op of the loss function | the name of a region that contracts refer to |
    | `shardc.cost` | function, after `propagate` | `#shardc.cost`: the cost of its plan |
    | `shardc.starts` | function, after `propagate` | list of `#shardc.start`: the collectives that reshards may use |
    | `shardc.seconds_per_byte` | module, after `propagate` | dictionary from mesh axis to seconds: the cost model of reshards |

    Contracts are `#shardc.max_collectives`, `#shardc.max_bytes`,
    `#shardc.max_memory` and `#shardc.no_redundant_flops`. On a module or a
    function each program made from it must keep them; on an argument or an op
    they limit the collectives that move that value (not its gradient).

    - E1: `shardc.expect` is a list of contracts, `shardc.region` a name.
    - E2: limits are not negative.
    - E3: `#shardc.max_memory` belongs on the module.
    - E4: `#shardc.no_redundant_flops` belongs on a module, a function or an op.
    - E5: the axis of a contract is one of the mesh.
    - E6: the region of a contract is one that an op has (checked by `import`).

    Attributes that `propagate` sets after a search:

    - P1: `shardc.cost` is a `#shardc.cost`; its objective is "time" or "bytes"
      and no cost is negative; `within` is an i64 above 0.
    - P2: `shardc.starts` is a list of `#shardc.start` over axes of the mesh.
    - P3: `shardc.seconds_per_byte` is a dictionary on the module, from axes of
      the mesh to numbers that are not negative.

    Pipelines:

    - L1: `shardc.pipeline` is a `#shardc.pipeline` on the module.
    - L2: `shardc.stage` is an i64 of at least 0.
    - L3: the axis of the pipeline is in no sharding (S6 of shardings).
    - L4: the axis of the pipeline is one of the mesh.
    - L5: `shardc.stage` is a stage of the module's pipeline. In the loss function
      `import` checks this, since options may replace the pipeline.
    - L6: `shardc.task`, `shardc.program` and `shardc.tasks` are strings,
      `shardc.pipeline_rank` and `shardc.number` are i64 of at least 0.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasConstantMaterializer = 0;
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let extraClassDeclaration = [{
    /// As MLIR generates it, and former names besides.
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute,
                        ::mlir::DialectAsmPrinter &printer) const override;
  }];
}

class Shardc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Shardc_Dialect, mnemonic, traits>;

#endif
