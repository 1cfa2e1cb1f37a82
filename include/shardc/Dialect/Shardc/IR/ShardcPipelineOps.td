//===- ShardcPipelineOps.td - Values between the stages of a pipeline --===//
//
// As far as the phase `kernels`, a program whose ops have a `shardc.stage` is one
// program for all ranks, and `shardc.transfer` marks the values that cross. The
// phase `schedule` makes a program for each rank, with sends and receives.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCPIPELINEOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCPIPELINEOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

def Shardc_TransferOp : Shardc_Op<"transfer", [Pure, SameOperandsAndResultType, Shardc_Rule]> {
  let summary = "The identity, from one stage of a pipeline to another";
  let description = [{
    The operand is made on stage `source`, and the result is used on stage
    `target`. Each device sends its shard to the device of the other stage that has
    the same place on all other mesh axes. Partial sums may cross as such.

    ```mlir
    %0 = shardc.transfer %x from 0 to 1 : tensor<8x64xf32>
    ```

    Constraints:
    - C1: the stages differ and are not negative.
    - C2: both are stages of the module's `shardc.pipeline`.
  }];
  let arguments = (ins Shardc_Tensor:$operand, I64Attr:$source, I64Attr:$target);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `from` $source `to` $target attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Shardc_SendOp : Shardc_Op<"send"> {
  let summary = "Copies values to another rank of the pipeline";
  let description = [{
    Each device sends its tensors to the device of rank `peer` that has the same
    place on all other mesh axes. That one's program has one `shardc.receive` of the
    same message. Messages are numbered from 0 on, over the programs of all ranks
    with the same name.

    ```mlir
    shardc.send %0 to 1 message 3 : tensor<8x64xf32>
    ```

    Constraints:
    - C1: `peer` and `message` are not negative.
  }];
  let arguments = (ins Variadic<Shardc_Tensor>:$operands, I64Attr:$peer, I64Attr:$message);
  let assemblyFormat = "$operands `to` $peer `message` $message attr-dict `:` type($operands)";
  let hasVerifier = 1;
}

def Shardc_ReceiveOp : Shardc_Op<"receive"> {
  let summary = "The values of a send of another rank of the pipeline";
  let description = [{
    ```mlir
    %0 = shardc.receive from 0 message 3 : tensor<8x64xf32>
    ```

    Constraints:
    - C1: `peer` and `message` are not negative.
  }];
  let arguments = (ins I64Attr:$peer, I64Attr:$message);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let assemblyFormat = "`from` $peer `message` $message attr-dict `:` type($results)";
  let hasVerifier = 1;
}

def Shardc_RowsOp : Shardc_Op<"rows", [Pure]> {
  let summary = "The rows of one microbatch";
  let description = [{
    Part `number` of `count` equal parts of the operand along dimension 0. The result
    is in the memory of the operand: nothing is copied.

    ```mlir
    %0 = shardc.rows %x 2 of 4 : tensor<32x16xf32> -> tensor<8x16xf32>
    ```

    Constraints:
    - C1: `number` is at least 0 and below `count`.
    - C2: the operand has the type of the result but for dimension 0, of which it has `count` times as much.
  }];
  let arguments = (ins Shardc_Tensor:$operand, I64Attr:$number, I64Attr:$count);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand $number `of` $count attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_ZerosOp : Shardc_Op<"zeros", [Pure]> {
  let summary = "Zeros: a sum over microbatches before the first";
  let description = [{
    ```mlir
    %0 = shardc.zeros : tensor<16x64xf32>
    ```
  }];
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif
