//===- ShardcShardingOps.td - Mesh and shardings of values -------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCSHARDINGOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCSHARDINGOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

def Shardc_MeshOp : Shardc_Op<"mesh", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "The device mesh";
  let description = [{
    Named axes with their sizes; devices are numbered row-major, the last axis
    fastest. A module has one mesh.

    ```mlir
    shardc.mesh @mesh <["data" = 4, "model" = 2]>
    ```

    Constraints:
    - C1: names are distinct, not empty and do not start with `*`, sizes at least 1.
    - C2: the number of devices fits 31 bits.
    - C3: the module has no other mesh.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$axes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The entries that are axes: all of them, except in a malformed mesh, which
    /// other ops may be verified against before the mesh is.
    ::llvm::SmallVector<MeshAxisAttr> getLegalAxes();
    /// Size of axis `name`, or 0 if there is no such axis.
    int64_t getAxisSize(::llvm::StringRef name);
    /// Index of axis `name` in declaration order, or -1.
    int64_t getAxisIndex(::llvm::StringRef name);
    /// Product of the sizes of `axes`, all of which exist.
    int64_t getNumShards(::llvm::ArrayRef<::mlir::StringAttr> axes);
    int64_t getNumDevices();
  }];
}

def Shardc_ShardingConstraintOp : Shardc_CoreOp<"sharding_constraint", [SameOperandsAndResultType]> {
  let summary = "The identity, with a required sharding";
  let description = [{
    The counterpart of JAX's `with_sharding_constraint`. Exactly one of
    `sharding` and `logical_axes` is given; `import` resolves the latter.

    ```mlir
    %0 = shardc.sharding_constraint %x sharding = <@mesh, [{"data"}, {} ]> : tensor<32x64xf32>
    %1 = shardc.sharding_constraint %x logical_axes = ["batch", "hidden"] : tensor<32x64xf32>
    ```

    Constraints:
    - C1: exactly one of `sharding` and `logical_axes`.
    - C2: one entry per dimension of the operand.
    - C3: the sharding is legal for the operand.
  }];
  let arguments = (ins Shardc_Tensor:$operand, OptionalAttr<Shardc_ShardingAttr>:$sharding,
      OptionalAttr<StrArrayAttr>:$logicalAxes);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = [{
    $operand (`sharding` `=` $sharding^)? (`logical_axes` `=` $logicalAxes^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Shardc_ReshardOp : Shardc_Op<"reshard", [Pure, SameOperandsAndResultType]> {
  let summary = "A change of sharding of a global tensor";
  let description = [{
    Marks a use in another sharding than that of the producer, until `partition`
    expands it into collectives. `cause` is the reason in words.

    ```mlir
    %0 = shardc.reshard %x from <@mesh, [{"data"}, {} ]> to <@mesh, [{}, {} ]> : tensor<32x64xf32>
    ```

    Constraints:
    - C1: both shardings are legal for the operand.
    - C2: axes that are unreduced in `to` are unreduced in `from`.
  }];
  let arguments = (ins Shardc_Tensor:$operand, Shardc_ShardingAttr:$from, Shardc_ShardingAttr:$to,
      OptionalAttr<StrAttr>:$cause);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `from` $from `to` $to attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif
