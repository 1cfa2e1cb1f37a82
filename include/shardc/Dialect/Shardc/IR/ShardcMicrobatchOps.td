//===- ShardcMicrobatchOps.td - Sums over the microbatches of a batch --===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCMICROBATCHOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCMICROBATCHOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

def Shardc_AccumulateOp : Shardc_Op<"accumulate", [Pure, SingleBlock, Shardc_Rule]> {
  let summary = "The body run on each microbatch, its results summed";
  let description = [{
    Gradient accumulation: the body runs `count` times, one run after the other.
    Each run takes the next rows of every operand and yields summands; the
    results are the sums over all runs. The runs together take all rows. Values
    from outside are the same in every run.

    A sum does not depend on the rows that make a microbatch. Where rows are
    sharded, every device takes the next ones of its own, so that nothing moves.
    The rows of all operands and of the body's arguments are sharded alike.
    Partial sums may be accumulated as such: a summand that is unreduced makes a
    result that is unreduced.

    ```mlir
    %0 = shardc.accumulate 4 of (%x, %g) : (tensor<32x16xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> {
    ^bb0(%arg0: tensor<8x16xf32>, %arg1: tensor<8x64xf32>):
      %1 = shardc.dot_general %arg0, %arg1 contracting = [0] x [0]
          : tensor<8x16xf32>, tensor<8x64xf32> -> tensor<16x64xf32>
      shardc.yield %1 : tensor<16x64xf32>
    }
    ```

    From `kernels` on the additions are ops of the body: it then has one more
    argument per result, the sum of the runs before, zero in the first, and
    yields the new sums.

    Constraints:
    - C1: at least one run and one operand.
    - C2: a body argument has the type of its operand but for dimension 0, of which it has 1/`count`.
    - C3: arguments beyond those of the operands, if any, have the types of the results.
    - C4: the yielded values have the types of the results.
    - C5: loops do not nest.
  }];
  let arguments = (ins I64Attr:$count, Variadic<Shardc_Tensor>:$operands);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count `of` `(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The body's arguments that are rows of the operands. The sharding rule
    /// has them as its results, to which it relates the operands.
    ::mlir::Block::BlockArgListType getSlices() {
      return getBody().getArguments().take_front(getOperands().size());
    }
    /// The body's arguments that are sums so far; none before `kernels`.
    ::mlir::Block::BlockArgListType getSums() {
      return getBody().getArguments().drop_front(getOperands().size());
    }
    YieldOp getYield();
    /// The rows that one device takes in one run.
    int64_t getRows();
  }];
}

def Shardc_ScatterRowsOp : Shardc_Op<"scatter_rows", [Pure, Shardc_Rule]> {
  let summary = "The rows of a microbatch at their places in the batch";
  let description = [{
    In the body of a `shardc.accumulate` with `count` runs: the rows that the run
    has become the rows of the batch that it takes; the other rows of the result are
    zero. So the sum of all runs has the rows of all of them. On a device, run i takes
    the i-th part of its rows of the batch.

    ```mlir
    %0 = shardc.scatter_rows %x of 4 : tensor<8xf32> -> tensor<32xf32>
    ```

    Constraints:
    - C1: the result has the type of the operand but for dimension 0, of which it has `count` times as much.
    - C2: the op is in the body of a `shardc.accumulate` with `count` runs.
  }];
  let arguments = (ins Shardc_Tensor:$operand, I64Attr:$count);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `of` $count attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

#endif
