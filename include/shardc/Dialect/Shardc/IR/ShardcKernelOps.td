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

def Shardc_GemmOp : Shardc_Op<"gemm", [Pure, AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let summary = "A GEMM that the library computes, with its epilogue";
  let description = [{
    activation(op(lhs)·op(rhs) + bias + sum); row-major rank-2 operands, or
    rank-3 with a leading batch dimension. The result takes the place of `sum`
    in memory. The GEMM for the gradient of a weight can compute that of the
    bias, too: with `sums_rhs` (or `sums_lhs`) a second result has the sums of
    the columns of that operand, the epilogue BGRAD of cuBLASLt.

    A GEMM with `relu` may have a mask as a further result: a bit per element
    that is set where the first result is positive. A GEMM with a mask after
    `where` is the gradient of that relu's operand: its elements are 0 where the
    bit is not set. With `sums_result` the second result has the sums of its
    columns. Only GEMMs make or read masks.

    ```mlir
    %0 = shardc.gemm %x, %w, %b relu : tensor<128x784xf32>, tensor<784x512xf32>, tensor<512xf32> -> tensor<128x512xf32>
    %1 = shardc.gemm %x, %g transpose_lhs : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>
    %2 = shardc.gemm %x, %g plus %1 transpose_lhs
        : tensor<128x784xf32>, tensor<128x512xf32> plus tensor<784x512xf32> -> tensor<784x512xf32>
    %3:2 = shardc.gemm %x, %g transpose_lhs sums_rhs
        : tensor<128x784xf32>, tensor<128x512xf32> -> tensor<784x512xf32>, tensor<512xf32>
    %4:2 = shardc.gemm %x, %w, %b relu
        : tensor<128x784xf32>, tensor<784x512xf32>, tensor<512xf32> -> tensor<128x512xf32> mask tensor<128x16xi32>
    %5 = shardc.gemm %d, %v where %4#1 transpose_rhs
        : tensor<128x10xf32>, tensor<512x10xf32> where tensor<128x16xi32> -> tensor<128x512xf32>
    %6:2 = shardc.gemm %d, %v where %4#1 transpose_rhs sums_result
        : tensor<128x10xf32>, tensor<512x10xf32> where tensor<128x16xi32> -> tensor<128x512xf32>, tensor<512xf32>
    ```

    Constraints:
    - C1: operands have the rank of the result, 2 or 3.
    - C2: contracted, batch and result dimensions agree.
    - C3: `bias` has the size of the last dimension of the result.
    - C4: `sum` has the type of the result.
    - C5: `lhs` and `rhs` have the element type of the result, or both bf16 where it is f32; `bias` has that of the result.
    - C6: `column_sums` is there if one of `sums_lhs`, `sums_rhs` and `sums_result` is, with the element type of the result and the size of its first dimension for `sums_lhs`, else its last. For an operand its rows are contracted, and there is neither a batch dimension, nor `bias`, nor `relu`, nor a mask; for the result there is `mask`.
    - C7: a mask of a result with m rows of n columns is a tensor of i32 of m rows of 4·ceil(n/128) elements. With one, the result is of rank 2 and there is no `sum`; `relu_mask` needs `relu`, `mask` excludes `bias` and `relu`.
  }];
  let arguments = (ins Shardc_FloatTensor:$lhs, Shardc_FloatTensor:$rhs, Optional<Shardc_FloatTensor>:$bias,
      Optional<Shardc_FloatTensor>:$sum, Optional<Shardc_IntTensor>:$mask, UnitAttr:$transposeLhs,
      UnitAttr:$transposeRhs, UnitAttr:$relu, UnitAttr:$sumsLhs, UnitAttr:$sumsRhs, UnitAttr:$sumsResult);
  let results = (outs Shardc_FloatTensor:$result, Optional<Shardc_FloatTensor>:$column_sums,
      Optional<Shardc_IntTensor>:$relu_mask);
  let assemblyFormat = [{
    $lhs `,` $rhs (`,` $bias^)? (`plus` $sum^)? (`where` $mask^)? (`transpose_lhs` $transposeLhs^)? (`transpose_rhs` $transposeRhs^)? (`relu` $relu^)? (`sums_lhs` $sumsLhs^)? (`sums_rhs` $sumsRhs^)? (`sums_result` $sumsResult^)?
    attr-dict `:` type($lhs) `,` type($rhs) (`,` type($bias)^)? (`plus` type($sum)^)? (`where` type($mask)^)? `->` type($result) (`,` type($column_sums)^)? (`mask` type($relu_mask)^)?
  }];
  let extraClassDeclaration = [{
    /// The type of masks of GEMMs with the result `type`, of rank 2.
    static ::mlir::RankedTensorType getMaskType(::mlir::RankedTensorType type);
  }];
  let hasVerifier = 1;
}

#endif
