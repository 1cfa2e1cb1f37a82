//===- ShardcPipelineOps.td - Values between the stages of a pipeline --===//
//
// A program whose ops have a `shardc.stage` is still one global program: these ops
// mark the places where values cross between stages.

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

#endif
