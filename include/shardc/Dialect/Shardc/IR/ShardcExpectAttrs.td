//===- ShardcExpectAttrs.td - Contracts on a program's cost ------------===//
//
// `shardc.expect` is a list of these on a module, a function, an argument or an
// op. docs/Explain.md shows how to use them in regression tests.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCEXPECTATTRS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCEXPECTATTRS_TD

include "shardc/Dialect/Shardc/IR/ShardcAttrs.td"

def Shardc_CollectiveKind : Shardc_Enum<"CollectiveKind", "collectives that move data", [
  I32EnumAttrCase<"AllReduce", 0, "all_reduce">,
  I32EnumAttrCase<"AllGather", 1, "all_gather">,
  I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">,
  I32EnumAttrCase<"AllToAll", 3, "all_to_all">,
  I32EnumAttrCase<"CollectivePermute", 4, "collective_permute">,
  I32EnumAttrCase<"Send", 5, "send">]>;

// A limit on the collectives that a filter lets through.
class Shardc_LimitAttr<string name, string mnemonic> : Shardc_Attr<name, mnemonic> {
  let parameters = (ins "int64_t":$limit,
                        "std::optional<::shardc::CollectiveKind>":$kind,
                        OptionalParameter<"::mlir::StringAttr">:$axis,
                        "std::optional<::shardc::Part>":$part,
                        OptionalParameter<"::mlir::StringAttr">:$region);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Shardc_MaxCollectivesAttr : Shardc_LimitAttr<"MaxCollectives", "max_collectives"> {
  let summary = "Contract: at most so many collectives";
  let description = [{
    Counts the collectives of each program after merging. A filter may follow
    the number: a kind, an axis that is among those of the collective, a part of
    the step, a region. The region comprises the ops with that `shardc.region`,
    their gradients, and the collectives that bring them their operands.

    ```mlir
    #shardc.max_collectives<0>
    #shardc.max_collectives<2 of all_gather over "data">
    #shardc.max_collectives<0 in forward>
    #shardc.max_collectives<1 of all_reduce over "model" in backward region "tower">
    ```
  }];
}

def Shardc_MaxBytesAttr : Shardc_LimitAttr<"MaxBytes", "max_bytes"> {
  let summary = "Contract: at most so many bytes on the wire";
  let description = [{
    Bytes that one device sends in one run of a program, as the communication
    report counts them, with the filters of `#shardc.max_collectives`.

    ```mlir
    #shardc.max_bytes<50362374>
    #shardc.max_bytes<25181184 of all_gather over "data" in forward>
    ```
  }];
}

def Shardc_MaxMemoryAttr : Shardc_Attr<"MaxMemory", "max_memory"> {
  let summary = "Contract: at most so many bytes of memory per device";
  let description = [{
    Compared with the planned peak, exactly the bytes that the runtime allocates.

    `#shardc.max_memory<1048576>`
  }];
  let parameters = (ins "int64_t":$limit);
  let assemblyFormat = "`<` $limit `>`";
  let genVerifyDecl = 1;
}

def Shardc_NoRedundantFlopsAttr : Shardc_Attr<"NoRedundantFlops", "no_redundant_flops"> {
  let summary = "Contract: no GEMM is computed more than once";
  let description = [{
    Every axis of the mesh (of more than one device) shards a factor of every
    GEMM, so that the devices together do the work of the global program,
    padding aside. On an op it applies to the GEMMs into which the op and its
    gradient decompose.

    `#shardc.no_redundant_flops`
  }];
}

#endif
