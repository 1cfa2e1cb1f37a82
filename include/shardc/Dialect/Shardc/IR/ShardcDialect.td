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
    | `shardc.role` | argument | `#shardc.parameter`, `#shardc.state`, `#shardc.input` or `#shardc.label` |
    | `shardc.sharding` | argument, result | `#shardc.sharding` at rest |
    | `shardc.logical_axes` | argument | one logical name (or "") per dimension; `shardc.rules` maps them |
    | `shardc.state_sharding` | argument | sharding of the optimizer states of this parameter |
    | `shardc.grad_sharding` | argument | sharding of the gradient of this parameter |
    | `shardc.label_classes` | label argument, after `differentiate` | labels are in [0, this) |
    | `shardc.rules` | module | dictionary from logical name to a list of mesh axes |
    | `shardc.uneven` | module | "pad" (default) or "error" for dimensions that do not divide |
    | `shardc.training` | module | `#shardc.training`: what to train and how |
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasConstantMaterializer = 0;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

class Shardc_Op<string mnemonic, list<Trait> traits = []>
    : Op<Shardc_Dialect, mnemonic, traits>;

#endif
