//===- ShardcOpBase.td - Base of the op families -----------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCOPBASE_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCOPBASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "shardc/Dialect/Shardc/IR/ShardcAttrs.td"
include "shardc/Dialect/Shardc/IR/ShardcInterfaces.td"

// Element types: f32, bf16, f64 values, i32 and i64 labels, indices and bits, i1 masks.
// Integers wrap around. They have no sign of their own: ops that depend on it take
// them as signed, unless they say otherwise.
def Shardc_Element : AnyTypeOf<[F32, BF16, F64, I32, I64, I1]>;
def Shardc_FloatElement : AnyTypeOf<[F32, BF16, F64]>;
def Shardc_IntElement : AnyTypeOf<[I32, I64]>;
def Shardc_Tensor : StaticShapeTensorOf<[Shardc_Element]>;
def Shardc_FloatTensor : StaticShapeTensorOf<[Shardc_FloatElement]>;
def Shardc_IntTensor : StaticShapeTensorOf<[Shardc_IntElement]>;
def Shardc_BoolTensor : StaticShapeTensorOf<[I1]>;

defvar Shardc_Rule = DeclareOpInterfaceMethods<ShardingRuleOpInterface>;
defvar Shardc_Vjp = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Shardc_Decompose = DeclareOpInterfaceMethods<CompositeOpInterface>;

#endif
