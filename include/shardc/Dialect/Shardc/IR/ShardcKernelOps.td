//===- ShardcKernelOps.td - Outlined compute ---------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCKERNELOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCKERNELOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

def Shardc_KernelOp : Shardc_Op<"kernel", [IsolatedFromAbove, Pure, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Core ops fused into one generated kernel";
  let description = [{
    The body's arguments are the operands; it holds core ops on local tensors
    and yields the results.

    ```mlir
    %0 = shardc.kernel(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
    ^bb0(%arg0: tensor<4x8xf32>, %arg1: tensor<8xf32>):
      %1 = shardc.broadcast %arg1 dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
      %2 = shardc.add %arg0, %1 : tensor<4x8xf32>
      shardc.yield %2 : tensor<4x8xf32>
    }
    ```

    Constraints:
    - C1: the body's arguments have the types of the operands.
    - C2: the yielded values have the types of the results.
  }];
  let arguments = (ins Variadic<Shardc_Tensor>:$operands);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $operands `)` attr-dict `:` functional-type($operands, $results) $body";
  let hasVerifier = 1;
}

def Shardc_YieldOp : Shardc_Op<"yield", [Pure, Terminator, ParentOneOf<["KernelOp", "AccumulateOp", "CollectiveStartOp"]>]> {
  let summary = "Returns the results of a kernel, a run of a loop, or a started collective";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
  let arguments = (ins Variadic<Shardc_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

def Shardc_GemmOp : Shardc_Op<"gemm", [Pure, AttrSizedOperandSegments]> {
  let summary = "A GEMM that the library computes, with its epilogue";
  let description = [{
    activation(op(lhs)·op(rhs) + bias + sum); row-major rank-2 operands, or
    rank-3 with a leading batch dimension. The result takes the place of `sum`
    in memory. The GEMM for the gradient of a weight can compute that of the
    bias, too: with `sums_rhs` (or `sums_lhs`) a second result has the sums of
    the columns of that operand, the epilogue BGRAD of cuBLASLt.

    ```mlir
    %0 = shardc.gemm %x, %w, %b relu : tensor<128x784xf32>, tensor<784x512xf32>, tensor<512xf32> -> tensor<128x512xf32>
    %1 = shardc.gemm %x, %g transpose_lhs : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>
    %2 = shardc.gemm %x, %g plus %1 transpose_lhs
        : tensor<128x784xf32>, tensor<128x512xf32> plus tensor<784x512xf32> -> tensor<784x512xf32>
    %3:2 = shardc.gemm %x, %g transpose_lhs sums_rhs
        : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>, tensor<512xf32>
    ```

    Constraints:
    - C1: operands have the rank of the result, 2 or 3.
    - C2: contracted, batch and result dimensions agree.
    - C3: `bias` has the size of the last dimension of the result.
    - C4: `sum` has the type of the result.
    - C5: `lhs` and `rhs` have the element type of the result, or both bf16 where it is f32; `bias` has that of the result.
    - C6: `column_sums` is there if one of `sums_lhs` and `sums_rhs` is, with the element type of the result and the size of its first dimension for `sums_lhs`, else its last. The rows of the operand are contracted, and there is neither a batch dimension, nor `bias`, nor `relu`.
  }];
  let arguments = (ins Shardc_FloatTensor:$lhs, Shardc_FloatTensor:$rhs, Optional<Shardc_FloatTensor>:$bias,
      Optional<Shardc_FloatTensor>:$sum, UnitAttr:$transposeLhs, UnitAttr:$transposeRhs, UnitAttr:$relu,
      UnitAttr:$sumsLhs, UnitAttr:$sumsRhs);
  let results = (outs Shardc_FloatTensor:$result, Optional<Shardc_FloatTensor>:$column_sums);
  let assemblyFormat = [{
    $lhs `,` $rhs (`,` $bias^)? (`plus` $sum^)? (`transpose_lhs` $transposeLhs^)? (`transpose_rhs` $transposeRhs^)? (`relu` $relu^)? (`sums_lhs` $sumsLhs^)? (`sums_rhs` $sumsRhs^)?
    attr-dict `:` type($lhs) `,` type($rhs) (`,` type($bias)^)? (`plus` type($sum)^)? `->` type($result) (`,` type($column_sums)^)?
  }];
  let hasVerifier = 1;
}

#endif
