//===- Passes.td - The passes of shardc's phases -----------------------===//
//
// In the order of the phases (lib/Pipelines/Phases.cpp). Each description has
// the input contract and the output contract of its pass.

#ifndef SHARDC_DIALECT_SHARDC_TRANSFORMS_PASSES_TD
#define SHARDC_DIALECT_SHARDC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

class Shardc_Pass<string argument> : Pass<"shardc-" # argument, "::mlir::ModuleOp"> {
  let dependentDialects = ["::shardc::ShardcDialect", "::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// after several phases
//===----------------------------------------------------------------------===//

def CheckExpectationsPass : Shardc_Pass<"check-expectations"> {
  let summary = "Refuse programs that break a contract";
  let description = [{
    Input: a module after the phase `after`. The IR stays as it is; every
    contract of a `shardc.expect` that can be checked there and is broken is an
    error, with a note for each op that breaks it: `no_redundant_flops` after
    `propagate`, `max_collectives` and `max_bytes` after `collectives`,
    `max_memory` after `memory`.
  }];
  let options = [Option<"after", "after", "std::string", "\"collectives\"",
      "The phase that has run: propagate, collectives or memory">];
}

//===----------------------------------------------------------------------===//
// import
//===----------------------------------------------------------------------===//

def ImportPass : Shardc_Pass<"import"> {
  let summary = "Check a source module and resolve its names";
  let description = [{
    Input: a module with a loss function over global tensors and
    `shardc.training`. Output: the same with the mesh overridden (one device if
    it had none), every logical axis resolved to a `shardc.sharding`, the batch
    size and the number of microbatches overridden, and all annotations
    verified.

    With `dtype=bf16` a loss function of f32 has the conversions of mixed
    precision: parameters and inputs are converted to bf16 before their first
    use, and all ops work on bf16 except those of the loss, which stay in f32:
    ops that depend on labels, `mse`, `softmax_cross_entropy`, and ops with a
    scalar result.

    ```mlir
    %z = shardc.linear %x, %w : tensor<32x16xf32>, tensor<16x8xf32> -> tensor<32x8xf32>
    %loss = shardc.mse %z, %y : tensor<32x8xf32> -> tensor<f32>
    ```

    becomes

    ```mlir
    %0 = shardc.convert %x : tensor<32x16xf32> -> tensor<32x16xbf16>
    %1 = shardc.convert %w : tensor<16x8xf32> -> tensor<16x8xbf16>
    %z = shardc.linear %0, %1 : tensor<32x16xbf16>, tensor<16x8xbf16> -> tensor<32x8xbf16>
    %2 = shardc.convert %z : tensor<32x8xbf16> -> tensor<32x8xf32>
    %loss = shardc.mse %2, %y : tensor<32x8xf32> -> tensor<f32>
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", "\"\"",
           "Replace the sizes of the mesh: data=4,model=2">,
    Option<"rules", "rules", "std::string", "\"\"",
           "Mesh axes of logical names: batch=data,hidden=model,embed=">,
    Option<"batch", "batch", "int64_t", "0",
           "Replace the leading dimension of inputs and labels (0: keep)">,
    Option<"microbatches", "microbatches", "int64_t", "0",
           "Replace the number of microbatches (0: keep)">,
    Option<"dtype", "dtype", "std::string", "\"\"",
           "The element type that a model of f32 computes in: f32 or bf16 (empty: keep its types)">,
    Option<"optimizer", "optimizer", "std::string", "\"\"",
           "Replace the optimizer: adam,b1=0.95 (empty: keep)">,
    Option<"learningRate", "learning-rate", "double", "0",
           "Replace the learning rate (0: keep)">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "Replace the schedule: cosine,warmup_steps=10,decay_steps=100 (empty: keep)">,
    Option<"clipNorm", "clip-norm", "double", "0",
           "Replace the largest global norm of the gradients (0: keep; inf: no clipping)">,
    Option<"stages", "stages", "int64_t", "-1",
           "Replace the size of the pipeline's axis (0: no pipeline; negative: keep)">,
    Option<"pipelineSchedule", "pipeline-schedule", "std::string", "\"\"",
           "Replace the schedule of the pipeline: a name or a file.csv (empty: keep)">,
    Option<"virtualStages", "virtual-stages", "int64_t", "0",
           "Replace the number of stages per rank (0: keep)">,
    Option<"recompute", "recompute", "std::string", "\"\"",
           "Replace the policy of recomputation: none, layer, stage or auto (empty: keep)">];
}

def AssignStagesPass : Shardc_Pass<"assign-stages"> {
  let summary = "Give every op of a pipeline's loss a stage";
  let description = [{
    Input: an imported module. Without `shardc.pipeline` it stays as it is.
    Output: every op of the loss function has a `shardc.stage`. Annotated ops keep
    theirs. The others are divided by a minimum cut at each boundary between
    stages: the fewest bytes of values, and of their gradients, cross it; no op is
    before an operand; among equal cuts ops go to the earlier stage. A pipeline of
    one stage is removed.

    If no op is annotated, the list of ops is cut: where the simulated step is
    shortest (`PipelineSchedules/StageCut.h`), by the estimated times of the ops and
    their gradients on `machine`, before anything is sharded. With `--device-memory`
    cuts are compiled on trial until one fits; if none does, the cut is taken that
    needs least.

    ```mlir
    %z1 = shardc.dot_general %x, %w1 contracting = [1] x [0] {shardc.stage = 0 : i64} : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    %h = shardc.add %z1, %z1 : tensor<32x64xf32>
    %z2 = shardc.dot_general %h, %w2 contracting = [1] x [0] {shardc.stage = 1 : i64} : tensor<32x64xf32>, tensor<64x8xf32> -> tensor<32x8xf32>
    ```

    puts `%h` on stage 0.
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"cpu\"",
           "Machine of the time estimates: a name or a JSON file">];
}

//===----------------------------------------------------------------------===//
// differentiate
//===----------------------------------------------------------------------===//

def DecomposeCompositesPass : Shardc_Pass<"decompose-composites"> {
  let summary = "Expand composites into the tensor core";
  let description = [{
    Input: functions with composite ops. Output: the tensor core, sharding
    constraints, and those composites that have a gradient of their own, unless
    `all`. A dropout also stays in a function without a step counter; with `all`
    it passes its operand through there. Not needed before `differentiate`.
  }];
  let options = [Option<"all", "all", "bool", "false",
      "Decompose also composites that have a gradient of their own">];
}

def DifferentiatePass : Shardc_Pass<"differentiate"> {
  let summary = "Turn the loss into a train step, an evaluation and a prediction";
  let description = [{
    Input: the output of `import`. Output: `@train_step(params, states, inputs,
    labels) -> (new params, new states, loss)` and `@evaluate(params, inputs,
    labels) -> results` in place of the loss function, over the tensor core.
    Every op carries `shardc.part` and the location of the op it came from.
    `shardc.result` names results: a parameter or state updated, "loss", and in
    the evaluation "per_example_loss" and, for classifiers, "correct".

    `@predict(params, inputs) -> prediction` is the output of the network: the
    last value that has the rows of the batch, depends on no label, and through
    which alone the loss depends on inputs. These are the logits of a
    softmax_cross_entropy and the prediction of an mse. A loss with several
    outputs, one that needs inputs by other ways, or one without labels that is
    neither of these two, has none; then the module has `shardc.no_prediction`, the
    reason with its place.
  }];
}

def SplitMicrobatchesPass : Shardc_Pass<"split-microbatches"> {
  let summary = "Accumulate gradients over microbatches in a loop";
  let description = [{
    Input: the output of `shardc-differentiate`. Output: where the training
    description asks for microbatches, or the module has a pipeline, the ops of `@train_step` that work on
    rows of the batch are the body of one `shardc.accumulate`, whose results are
    the gradients and the loss; all other ops stay outside. With a pipeline the same
    is done to `@evaluate` and `@predict`; results that have rows of the batch are sums of
    `shardc.scatter_rows`. The values are those of the whole batch, dropout
    included. A step in which rows depend on each other, or which needs a sum over
    all rows inside the loop, is an error.

    Microbatches have equally many rows on every device. D is the number of
    devices over all mesh axes that annotations name along the rows. A batch that
    is no multiple of D times the microbatches is padded to one: inputs, labels
    and results by rows get more rows and `shardc.unpadded_rows`, and what a sum
    over rows reads is replaced by zeros behind the last row of data. Then
    `@evaluate` and `@predict` are cut, too. With `shardc.uneven = "error"` this is an error.

    ```mlir
    %loss, %dw = shardc.accumulate 4 of (%x, %y) : ... {
    ^bb0(%x_part: tensor<8x16xf32>, %y_part: tensor<8x8xf32>):
      %z = shardc.dot_general %x_part, %w contracting = [1] x [0] : ...
    ```
  }];
}

def InsertTransfersPass : Shardc_Pass<"insert-transfers"> {
  let summary = "Mark the values that cross between stages of a pipeline";
  let description = [{
    Input: the output of `shardc-split-microbatches`. Without `shardc.pipeline` it
    stays as it is. Output: an op has a `shardc.stage`, unless all ranks compute
    it, and a value that is made on one rank and used on another goes through a
    `shardc.transfer`, one for each stage that uses it. A parameter is at home on
    the first stage that uses it, with its states and its update; a gradient is on
    the stage of the op that it is the gradient of. What a loop does not change
    crosses once, outside of it: parameters that several stages use, and the sums
    of their gradients. A sum of scalars of several ranks, as for the global norm,
    has no stage: each rank adds what it has.

    ```mlir
    %z = shardc.relu %a {shardc.stage = 0 : i64} : tensor<8x64xf32>
    %t = shardc.transfer %z from 0 to 1 : tensor<8x64xf32>
    %o = shardc.dot_general %t, %w contracting = [1] x [0] {shardc.stage = 1 : i64} : tensor<8x64xf32>, tensor<64x8xf32> -> tensor<8x8xf32>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// propagate
//===----------------------------------------------------------------------===//

def PropagatePass : Shardc_Pass<"propagate"> {
  let summary = "Choose the sharding strategy of every op";
  let description = [{
    Input: functions over the tensor core whose arguments, results and
    constraints may carry shardings. Output: every op that has a sharding rule
    carries `shardc.strategy`, one closed axis list per factor; every argument
    and result of a function has a closed `shardc.sharding`; `shardc.origin`
    names the annotations that the axes of an op came from. Nothing else changes:
    the shardings of operands and results follow from rule and strategy.

    With `partition=follow` the annotations flow through the sharding rules.
    With `partition=cheapest` annotations stay, and an exact search chooses the
    rest (docs/AutoSharding.md). It minimises the cost of the first function, and
    then of each other one with the storage shardings of shared arguments fixed:
    the time by the model of `machine` (`objective=time`) or the bytes on the
    wire (`objective=bytes`). The module gets `shardc.partition`, because
    reshards may then use any axis, and each function its `shardc.cost`. By time,
    `shardc.seconds_per_byte` on the module is the cost model of reshards, and
    `shardc.starts` on each function lists the collectives that they may use.
    Within the phases the plan found is compared with that of `partition=follow`,
    by the estimates of reports after `memory`; the better one is written.

    ```mlir
    %0 = shardc.dot_general %x, %w contracting = [1] x [0]
        {shardc.strategy = #shardc.strategy<[{"data"}, {}, {} ]>}
        : tensor<32x16xf32>, tensor<16x64xf32> -> tensor<32x64xf32>
    ```
  }];
  let options = [
    Option<"partition", "partition", "std::string", "\"follow\"",
           "follow or cheapest">,
    Option<"objective", "objective", "std::string", "\"time\"",
           "The objective of cheapest: time or bytes">,
    Option<"machine", "machine", "std::string", "\"cpu\"",
           "The machine of time estimates: a built-in name or a JSON file">,
    Option<"regather", "regather", "bool", "false",
           "Costs of plans with rematerialised all-gathers of weights, as "
           "shardc-insert-reshards makes them with the same option">,
    Option<"gap", "gap", "double", "1e-4",
           "Relative gap at which the search for the least time may stop; at "
           "least a millionth">,
    Option<"maxStrategies", "max-strategies", "int64_t", "0",
           "Most sharding strategies of all ops that cheapest searches, and "
           "most combinations of them (0: the defaults)">,
    Option<"maxAssignments", "max-assignments", "int64_t", "0",
           "The former name of max-strategies">,
    Option<"maxBranchOptions", "max-branch-options", "int64_t", "0",
           "Most sharding strategies, summed over the branches of the search "
           "for the least time, before cheapest takes the best plan so far "
           "(0: 1000000)">
  ];
}

//===----------------------------------------------------------------------===//
// partition
//===----------------------------------------------------------------------===//

def InsertReshardsPass : Shardc_Pass<"insert-reshards"> {
  let summary = "Make every change of sharding explicit";
  let description = [{
    Input: the output of `shardc-propagate` (or of any other planner in the same
    form). Output: the same global program without sharding constraints, with a
    `shardc.reshard` for every value and every sharding in which it is used
    other than that of its producer. Partial sums are reduced where the first
    op that cannot work on them needs them.

    ```mlir
    %1 = shardc.reshard %w from <@mesh, [{"data"}, {} ]> to <@mesh, [{}, {} ]>
        {cause = "w0 is stored sharded over \"data\" and gathered at its use in linear at mlp.mlir:12"}
        : tensor<16x64xf32>
    ```

    A weight that is gathered for the forward pass is held until the backward
    pass has used it. With `regather` the all-gather is rematerialised: each pass
    gathers the weight for itself (`reshard_after_forward` in PyTorch FSDP2), in
    the loop over microbatches if there is one. `shardc.gathered_for` on the
    reshards that gather weights, and on their collectives, then names the pass
    and keeps those of one weight apart. Either way `shardc.regather` on the
    function has the cost of the choice.
  }];
  let options = [Option<"regather", "regather", "bool", "false",
      "Gather weights again in the backward pass">];
}

def PartitionPass : Shardc_Pass<"partition"> {
  let summary = "Rewrite the global program as that of one device (SPMD)";
  let description = [{
    Input: the output of `shardc-insert-reshards`. Output: functions over local
    tensors with explicit collectives (`shardc.cause` on each), masks where
    padding would be summed or maximised over, and `shard` on ops that need the
    global index. Arguments and results keep `shardc.sharding` and gain
    `shardc.global_shape`. No `shardc.reshard` and no strategy is left.

    ```mlir
    %1 = shardc.all_gather %w over @mesh["data"] dims = [0] {shardc.cause = "..."}
        : (tensor<4x64xf32>) -> tensor<16x64xf32>
    ```
  }];
}

def CompleteStagesPass : Shardc_Pass<"complete-stages"> {
  let summary = "Give the stages of a pipeline to what partitioning added";
  let description = [{
    Input: a partitioned program. Without `shardc.pipeline` it stays as it is.
    Output: collectives, slices and masks have the `shardc.stage` of their operands,
    or else of their users, as those have that move values of the forward pass for the
    backward pass; one with users on several stages is cloned for each.
    Collectives of different stages are thereby never in one bucket. Where scalars of
    stages are added, an all-reduce over the axis of the pipeline completes the sum
    on all ranks.

    ```mlir
    %w = shardc.all_gather %p over @mesh["data"] dims = [0] : (tensor<8x64xf32>) -> tensor<16x64xf32>
    %z = shardc.dot_general %x, %w contracting = [1] x [0] {shardc.stage = 1 : i64} : tensor<8x16xf32>, tensor<16x64xf32> -> tensor<8x64xf32>
    ```

    puts the all-gather on stage 1.
  }];
}

//===----------------------------------------------------------------------===//
// collectives
//===----------------------------------------------------------------------===//

def SimplifyCollectivesPass : Shardc_Pass<"simplify-collectives"> {
  let summary = "Merge equal collectives and form reduce-scatters";
  let description = [{
    Input: local programs whose collectives have one operand each. Output: the
    same with

    - one op for collectives of equal operands and attributes, whose causes are
      joined,
    - an all_reduce of an all_reduce turned into one over the axes of both,
    - an all_reduce of which only one slice is used, over some of its axes,
      turned into a reduce_scatter over those and, if there are others, an
      all_reduce of the shard over them.

    ```mlir
    %0 = shardc.all_reduce sum %g over @mesh["r", "d"] : (tensor<16x64xf32>) -> tensor<16x64xf32>
    %1 = shardc.slice %0 over @mesh["d"] dim = 0 : tensor<16x64xf32> -> tensor<4x64xf32>
    ```

    becomes

    ```mlir
    %0 = shardc.reduce_scatter sum %g over @mesh["d"] dims = [0] : (tensor<16x64xf32>) -> tensor<4x64xf32>
    %1 = shardc.all_reduce sum %0 over @mesh["r"] : (tensor<4x64xf32>) -> tensor<4x64xf32>
    ```
  }];
}

def CombineCollectivesPass : Shardc_Pass<"combine-collectives"> {
  let summary = "Merge collectives of the same kind and axes";
  let description = [{
    Input: local programs. Output: the same with buckets: independent
    all_reduces (all_gathers, reduce_scatters) over the same axes are one op,
    placed after the last operand and before the first use. In one bucket all
    weights gathered for one pass would be held at once, and so would the
    gradients next to them: their buckets have at most the average size of such a
    weight.

    ```mlir
    %0:2 = shardc.all_reduce sum %dw, %db over @mesh["data"] {shardc.cause = "..."}
        : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
    ```
  }];
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", "0",
      "Most bytes of a collective with several tensors, as the communication "
      "report counts them (0: no limit)">];
}

//===----------------------------------------------------------------------===//
// reports
//===----------------------------------------------------------------------===//

def ReportCommunicationPass : Shardc_Pass<"report-communication"> {
  let summary = "Print the collectives of each program";
  let description = [{
    Input: local programs, at any phase from `partition` on. Prints for each
    function its collectives with their bytes and causes, and totals. The IR
    stays as it is.
  }];
  let options = [Option<"json", "json", "bool", "false",
      "One JSON object, from function name to report">];
}

def ReportShardingsPass : Shardc_Pass<"report-shardings"> {
  let summary = "Print the storage sharding of every tensor";
  let description = [{
    Input: a module at any phase from `propagate` on. Prints for each function
    the shardings of its arguments, and pictures of them. The IR stays as it is.
  }];
  let options = [Option<"json", "json", "bool", "false",
      "One JSON object, from function name to report">];
}

include "shardc/Transforms/KernelPasses.td"

#endif
