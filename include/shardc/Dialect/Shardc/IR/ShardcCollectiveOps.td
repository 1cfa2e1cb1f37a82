//===- ShardcCollectiveOps.td - Collectives on local tensors -----------===//
//
// Groups are named: the devices that agree on all other axes form a group, and
// its members are ordered by their index over `axes`, major to minor. Types are
// local. Where a dimension does not divide, the gathered side has its true
// size s and the scattered one ceil(s/n).

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCCOLLECTIVEOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCCOLLECTIVEOPS_TD

include "mlir/IR/AttrTypeBase.td"
include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

class Shardc_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Shardc_Op<mnemonic, traits # [Pure]>;

def Shardc_AllReduceOp : Shardc_CollectiveOp<"all_reduce"> {
  let summary = "Reduction over a group, its result on every member";
  let description = [{
    Several tensors in one op are one bucket.

    ```mlir
    %0 = shardc.all_reduce sum %x over @mesh["data"] : (tensor<16x64xf32>) -> tensor<16x64xf32>
    %1:2 = shardc.all_reduce sum %x, %y over @mesh["data", "model"]
        : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
    ```

    Constraints:
    - C1: axes are of the mesh and distinct, at least one.
    - C2: results have the types of the operands, at least one.
  }];
  let arguments = (ins Shardc_ReductionKindAttr:$kind, Variadic<Shardc_Tensor>:$operands,
      FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let assemblyFormat = "`` $kind $operands `over` $mesh `` $axes attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

def Shardc_AllGatherOp : Shardc_CollectiveOp<"all_gather"> {
  let summary = "Shards concatenated on every member";
  let description = [{
    ```mlir
    %0 = shardc.all_gather %w over @mesh["data"] dims = [0] : (tensor<4x64xf32>) -> tensor<16x64xf32>
    ```

    Constraints:
    - C1: axes are of the mesh and distinct, at least one.
    - C2: one entry of `dims` per operand, in range.
    - C3: dimension `dims[i]` of operand i is ceil(size of that of result i / n); the others are equal.
  }];
  let arguments = (ins Variadic<Shardc_Tensor>:$operands, FlatSymbolRefAttr:$mesh,
      StrArrayAttr:$axes, DenseI64ArrayAttr:$dims);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let assemblyFormat = "$operands `over` $mesh `` $axes `dims` `=` $dims attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

def Shardc_ReduceScatterOp : Shardc_CollectiveOp<"reduce_scatter"> {
  let summary = "Sum over a group, each member keeping its shard";
  let description = [{
    ```mlir
    %0 = shardc.reduce_scatter sum %g over @mesh["data"] dims = [0] : (tensor<16x64xf32>) -> tensor<4x64xf32>
    ```

    Constraints:
    - C1: axes are of the mesh and distinct, at least one.
    - C2: one entry of `dims` per operand, in range.
    - C3: dimension `dims[i]` of result i is ceil(size of that of operand i / n); the others are equal.
  }];
  let arguments = (ins Shardc_ReductionKindAttr:$kind, Variadic<Shardc_Tensor>:$operands, FlatSymbolRefAttr:$mesh,
      StrArrayAttr:$axes, DenseI64ArrayAttr:$dims);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let assemblyFormat = "`` $kind $operands `over` $mesh `` $axes `dims` `=` $dims attr-dict `:` functional-type($operands, $results)";
  let hasVerifier = 1;
}

def Shardc_AllToAllOp : Shardc_CollectiveOp<"all_to_all"> {
  let summary = "Axes moved from one dimension to another";
  let description = [{
    `split_dim` loses by the group size, `concat_dim` gains by it.

    ```mlir
    %0 = shardc.all_to_all %x over @mesh["x"] split_dim = 1 concat_dim = 0 : tensor<4x16xf32> -> tensor<8x8xf32>
    ```

    Constraints:
    - C1: axes are of the mesh and distinct, at least one.
    - C2: the dimensions are in range and different.
    - C3: `split_dim` of the result is ceil(size/n) of the operand's, `concat_dim` of the operand ceil(size/n) of the result's; the others are equal.
  }];
  let arguments = (ins Shardc_Tensor:$operand, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes,
      I64Attr:$splitDim, I64Attr:$concatDim);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = [{
    $operand `over` $mesh `` $axes `split_dim` `=` $splitDim `concat_dim` `=` $concatDim
    attr-dict `:` type($operand) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Shardc_CollectivePermuteOp : Shardc_CollectiveOp<"collective_permute", [SameOperandsAndResultType]> {
  let summary = "Each member's tensor sent to another";
  let description = [{
    A device receives the operand of the device whose index over `axes` equals
    its own index over `target_axes`: `[{x,y} ] → [{y,x} ]` is one permute. With
    `sources` that index i stands for `sources[i]`: a device of a ring over 3
    receives from the one before it.

    ```mlir
    %0 = shardc.collective_permute %x over @mesh["x", "y"] to ["y", "x"] : tensor<4x16xf32>
    %1 = shardc.collective_permute %x over @mesh["z"] to ["z"] sources = [2, 0, 1] : tensor<4x16xf32>
    ```

    Constraints:
    - C1: axes are of the mesh and distinct, at least one.
    - C2: `target_axes` is a permutation of `axes`.
    - C3: `sources`, if there are any, are a permutation of the n members.
  }];
  let arguments = (ins Shardc_Tensor:$operand, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, StrArrayAttr:$targetAxes,
      OptionalAttr<DenseI64ArrayAttr>:$sources);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `over` $mesh `` $axes `to` $targetAxes (`sources` `=` $sources^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Shardc_SliceOp : Shardc_CollectiveOp<"slice"> {
  let summary = "Each member's own shard of a tensor that all hold";
  let description = [{
    Moves nothing. Shards beyond the end have undefined padding.

    ```mlir
    %0 = shardc.slice %w over @mesh["data"] dim = 0 : tensor<16x64xf32> -> tensor<4x64xf32>
    ```

    Constraints:
    - C1: axes are of the mesh and distinct, at least one.
    - C2: `dim` is in range; that of the result is ceil(size/n) of the operand's; the others are equal.
  }];
  let arguments = (ins Shardc_Tensor:$operand, FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, I64Attr:$dim);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `over` $mesh `` $axes `dim` `=` $dim attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Collectives in flight
//===----------------------------------------------------------------------===//

def Shardc_HandleType : TypeDef<Shardc_Dialect, "Handle"> {
  let mnemonic = "handle";
  let summary = "A collective in flight";
  let description = [{
    The link from `shardc.collective_start` to its one `shardc.collective_wait`.
    It has no place in memory.
  }];
}

def Shardc_CollectiveStartOp : Shardc_Op<"collective_start",
    [IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "The start of a collective that is waited for later";
  let description = [{
    The body is the collective, send or receive: its arguments are the operands, and it yields
    the results, which exist after the wait. From the start to the wait the
    collective is in flight: its operands must not be overwritten, and the
    memory of its results must not be touched.

    ```mlir
    %h = shardc.collective_start(%dw, %db) : tensor<16x64xf32>, tensor<64xf32> {
    ^bb0(%arg0: tensor<16x64xf32>, %arg1: tensor<64xf32>):
      %0:2 = shardc.all_reduce sum %arg0, %arg1 over @mesh["data"]
          : (tensor<16x64xf32>, tensor<64xf32>) -> (tensor<16x64xf32>, tensor<64xf32>)
      shardc.yield %0#0, %0#1 : tensor<16x64xf32>, tensor<64xf32>
    }
    %1:2 = shardc.collective_wait %h : tensor<16x64xf32>, tensor<64xf32>
    ```

    `()` stands for no types: those of the operands of a receive, and of the results of
    a send.

    Constraints:
    - C1: the body's arguments have the types of the operands.
    - C2: the body is one collective, send or receive on all its arguments, in order, and a yield of all its results, in order.
    - C3: one `shardc.collective_wait` uses the handle, and nothing else.
  }];
  let arguments = (ins Variadic<Shardc_Tensor>:$operands);
  let results = (outs Shardc_HandleType:$handle);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $operands `)` attr-dict `:` custom<TypesOrNone>(type($operands)) $body";
  let extraClassDeclaration = [{
    /// The collective in the body.
    ::mlir::Operation *getCollective() { return &getBody().front().front(); }
    /// The op that waits for it.
    CollectiveWaitOp getWait();
  }];
  let hasVerifier = 1;
}

def Shardc_CollectiveWaitOp : Shardc_Op<"collective_wait"> {
  let summary = "The results of a collective that was started";
  let description = [{
    ```mlir
    %0 = shardc.collective_wait %h : tensor<16x64xf32>
    ```

    Constraints:
    - C1: the handle is the result of a `shardc.collective_start`.
    - C2: the results have the types of the values that its body yields.
  }];
  let arguments = (ins Shardc_HandleType:$handle);
  let results = (outs Variadic<Shardc_Tensor>:$results);
  let assemblyFormat = "$handle attr-dict `:` custom<TypesOrNone>(type($results))";
  let extraClassDeclaration = [{
    /// The op that started the collective.
    CollectiveStartOp getStart() {
      return getHandle().getDefiningOp<CollectiveStartOp>();
    }
  }];
  let hasVerifier = 1;
}

#endif
