//===- ShardcCoreOps.td - The tensor core ------------------------------===//
//
// The ops of which every training step consists after `import`. Shapes are
// static; there is no implicit broadcasting.

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCCOREOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCCOREOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

class Shardc_CoreOp<string mnemonic, list<Trait> traits = []>
    : Shardc_Op<mnemonic, traits # [Pure, Shardc_Rule, Shardc_Vjp]>;

class Shardc_UnaryOp<string mnemonic, string what>
    : Shardc_CoreOp<mnemonic, [SameOperandsAndResultType]> {
  let summary = "Elementwise " # what;
  let description = "\nComputes " # what # " of each element.\n\n```mlir\n%0 = shardc." # mnemonic # " %x : tensor<4x8xf32>\n```\n";
  let arguments = (ins Shardc_FloatTensor:$operand);
  let results = (outs Shardc_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Shardc_NegOp : Shardc_UnaryOp<"neg", "negation">;
def Shardc_AbsOp : Shardc_UnaryOp<"abs", "absolute value">;
def Shardc_SignOp : Shardc_UnaryOp<"sign", "sign (-1, 0 or 1)">;
def Shardc_ExpOp : Shardc_UnaryOp<"exp", "e^x">;
def Shardc_Expm1Op : Shardc_UnaryOp<"expm1", "e^x - 1">;
def Shardc_LogOp : Shardc_UnaryOp<"log", "natural logarithm">;
def Shardc_Log1pOp : Shardc_UnaryOp<"log1p", "log(1 + x)">;
def Shardc_SqrtOp : Shardc_UnaryOp<"sqrt", "square root">;
def Shardc_RsqrtOp : Shardc_UnaryOp<"rsqrt", "1 / square root">;
def Shardc_TanhOp : Shardc_UnaryOp<"tanh", "hyperbolic tangent">;
def Shardc_ErfOp : Shardc_UnaryOp<"erf", "error function">;
def Shardc_CosOp : Shardc_UnaryOp<"cos", "cosine">;
def Shardc_SinOp : Shardc_UnaryOp<"sin", "sine">;
def Shardc_FloorOp : Shardc_UnaryOp<"floor", "rounding towards minus infinity">;
def Shardc_StopGradientOp : Shardc_UnaryOp<"stop_gradient", "identity whose gradient is zero">;

class Shardc_BinaryOp<string mnemonic, string what, list<Trait> traits = [], Type operand = Shardc_Tensor>
    : Shardc_CoreOp<mnemonic, traits # [SameOperandsAndResultType]> {
  let summary = "Elementwise " # what;
  let description = "\nBoth operands have the type of the result.\n\n```mlir\n%0 = shardc." # mnemonic # " %a, %b : tensor<4x8xf32>\n```\n";
  let arguments = (ins operand:$lhs, operand:$rhs);
  let results = (outs operand:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def Shardc_AddOp : Shardc_BinaryOp<"add", "sum", [Commutative]>;
def Shardc_SubOp : Shardc_BinaryOp<"sub", "difference">;
def Shardc_MulOp : Shardc_BinaryOp<"mul", "product", [Commutative]>;
def Shardc_DivOp : Shardc_BinaryOp<"div", "quotient">;
def Shardc_MaxOp : Shardc_BinaryOp<"max", "maximum", [Commutative]>;
def Shardc_MinOp : Shardc_BinaryOp<"min", "minimum", [Commutative]>;
def Shardc_RemainderOp : Shardc_BinaryOp<"remainder", "remainder of the truncated quotient, exact, with the sign of the dividend">;
def Shardc_PowerOp : Shardc_BinaryOp<"power", "x^y, as pow of C", [], Shardc_FloatTensor>;

// Ops on the bits of integers.
class Shardc_BitsOp<string mnemonic, string what, list<Trait> traits = []>
    : Shardc_BinaryOp<mnemonic, what, traits, Shardc_IntTensor>;

def Shardc_AndOp : Shardc_BitsOp<"and", "conjunction of bits", [Commutative]>;
def Shardc_OrOp : Shardc_BitsOp<"or", "disjunction of bits", [Commutative]>;
def Shardc_XorOp : Shardc_BitsOp<"xor", "exclusive disjunction of bits", [Commutative]>;
def Shardc_ShiftLeftOp : Shardc_BitsOp<"shift_left", "shift towards the higher bits; 0 if all bits leave">;
def Shardc_ShiftRightLogicalOp : Shardc_BitsOp<"shift_right_logical",
    "shift towards the lower bits, filled with 0; 0 if all bits leave">;
def Shardc_ShiftRightArithmeticOp : Shardc_BitsOp<"shift_right_arithmetic",
    "shift towards the lower bits, filled with the sign; the sign if all bits leave">;

def Shardc_BitcastOp : Shardc_CoreOp<"bitcast"> {
  let summary = "The same bits as another element type";
  let description = [{
    ```mlir
    %0 = shardc.bitcast %x : tensor<4x8xf32> -> tensor<4x8xi32>
    ```

    Constraints:
    - C1: the result has the shape of the operand.
    - C2: one element type is a float, the other an integer of as many bits.
  }];
  let arguments = (ins Shardc_Tensor:$operand);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_CompareOp : Shardc_CoreOp<"compare", [AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "Elementwise comparison";
  let description = [{
    ```mlir
    %0 = shardc.compare gt %a, %b : tensor<4x8xf32> -> tensor<4x8xi1>
    ```

    Constraints:
    - C1: the result has the shape of the operands.
  }];
  let arguments = (ins Shardc_CompareKindAttr:$kind, Shardc_Tensor:$lhs, Shardc_Tensor:$rhs);
  let results = (outs Shardc_BoolTensor:$result);
  let assemblyFormat = "`` $kind $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_SelectOp : Shardc_CoreOp<"select", [AllTypesMatch<["onTrue", "onFalse", "result"]>]> {
  let summary = "Elementwise choice";
  let description = [{
    ```mlir
    %0 = shardc.select %p, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>
    ```

    Constraints:
    - C1: the predicate has the shape of the result.
  }];
  let arguments = (ins Shardc_BoolTensor:$predicate, Shardc_Tensor:$onTrue, Shardc_Tensor:$onFalse);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$predicate `,` $onTrue `,` $onFalse attr-dict `:` type($predicate) `,` type($result)";
  let hasVerifier = 1;
}

def Shardc_ConvertOp : Shardc_CoreOp<"convert"> {
  let summary = "Elementwise conversion of the element type";
  let description = [{
    Float to narrower float rounds to nearest even; i1 to a number gives 0 or 1.

    ```mlir
    %0 = shardc.convert %x : tensor<4x8xbf16> -> tensor<4x8xf32>
    ```

    Constraints:
    - C1: the result has the shape of the operand.
  }];
  let arguments = (ins Shardc_Tensor:$operand);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_DotGeneralOp : Shardc_CoreOp<"dot_general"> {
  let summary = "Contraction of two tensors";
  let description = [{
    Result dimensions are the batching ones, the free ones of `lhs`, then those
    of `rhs`, each in the order of its operand. For operands of bf16 the
    accumulator is f32; the result is its value, or that value rounded to bf16.
    Of bools an element is whether both factors are true in any of its terms.

    ```mlir
    %0 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
    %1 = shardc.dot_general %c, %d batching = [0] x [0] contracting = [2] x [1]
        : tensor<3x4x8xbf16>, tensor<3x8x2xbf16> -> tensor<3x4x2xf32>
    ```

    Constraints:
    - C1: dimension numbers are in range and used once per operand.
    - C2: as many contracting (batching) dimensions on the left as on the right, of equal sizes.
    - C3: the result has the shape that follows.
    - C4: operands have the same element type.
    - C5: the result has the element type of the operands, or f32 where theirs is bf16.
  }];
  let arguments = (ins Shardc_Tensor:$lhs, Shardc_Tensor:$rhs,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$lhsBatching,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$rhsBatching,
      DenseI64ArrayAttr:$lhsContracting, DenseI64ArrayAttr:$rhsContracting);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`batching` `=` $lhsBatching^ `x` $rhsBatching)?
    `contracting` `=` $lhsContracting `x` $rhsContracting attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Dimensions of lhs (rhs) that are neither batching nor contracting, ascending.
    ::llvm::SmallVector<int64_t> getLhsFree();
    ::llvm::SmallVector<int64_t> getRhsFree();
  }];
}

def Shardc_BroadcastOp : Shardc_CoreOp<"broadcast"> {
  let summary = "Repetition along new dimensions";
  let description = [{
    Operand dimension i becomes result dimension `dims[i]`; the others are new.

    ```mlir
    %0 = shardc.broadcast %b dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
    ```

    Constraints:
    - C1: `dims` has one entry per operand dimension, ascending and in range.
    - C2: result dimension `dims[i]` has the size of operand dimension i.
    - C3: the element types are equal.
  }];
  let arguments = (ins Shardc_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `dims` `=` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_ReduceOp : Shardc_CoreOp<"reduce"> {
  let summary = "Sum or maximum over dimensions";
  let description = [{
    The reduced dimensions disappear. A sum of bools is whether any of them is
    true.

    ```mlir
    %0 = shardc.reduce sum %x dims = [0] : tensor<4x8xf32> -> tensor<8xf32>
    ```

    Constraints:
    - C1: `dims` are ascending and in range.
    - C2: the result has the remaining dimensions and the element type of the operand.
  }];
  let arguments = (ins Shardc_ReductionKindAttr:$kind, Shardc_Tensor:$operand, DenseI64ArrayAttr:$dims);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "`` $kind $operand `dims` `=` $dims attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_TransposeOp : Shardc_CoreOp<"transpose"> {
  let summary = "Permutation of dimensions";
  let description = [{
    Result dimension i is operand dimension `permutation[i]`.

    ```mlir
    %0 = shardc.transpose %x permutation = [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    ```

    Constraints:
    - C1: `permutation` is one of the operand's dimensions.
    - C2: the result has the permuted shape and the element type of the operand.
  }];
  let arguments = (ins Shardc_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `permutation` `=` $permutation attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_ReshapeOp : Shardc_CoreOp<"reshape"> {
  let summary = "The same elements in row-major order under another shape";
  let description = [{
    ```mlir
    %0 = shardc.reshape %x : tensor<4x8xf32> -> tensor<4x2x4xf32>
    ```

    Constraints:
    - C1: as many elements, of the same type.
  }];
  let arguments = (ins Shardc_Tensor:$operand);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Shardc_ExtractSliceOp : Shardc_CoreOp<"extract_slice"> {
  let summary = "Every so many elements of each dimension, from one on";
  let description = [{
    Result element i along dimension d is operand element
    `starts[d] + i * strides[d]`. A dimension that is taken whole may be sharded;
    any other is gathered first.

    ```mlir
    %0 = shardc.extract_slice %x starts = [0, 2] strides = [1, 3] : tensor<4x8xf32> -> tensor<4x2xf32>
    ```

    Constraints:
    - C1: `starts` and `strides` have one entry per dimension, starts at least 0, strides at least 1.
    - C2: the result has the rank and the element type of the operand.
    - C3: the last element of each dimension of the result is in the operand.
  }];
  let arguments = (ins Shardc_Tensor:$operand, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$strides);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `starts` `=` $starts `strides` `=` $strides attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether dimension `dim` is that of the operand as it is.
    bool isWhole(int64_t dim);
  }];
}

def Shardc_PadOp : Shardc_CoreOp<"pad"> {
  let summary = "Elements of one value before, between and after those of the operand";
  let description = [{
    The reverse of `extract_slice`: operand element i along dimension d becomes result
    element `low[d] + i * (interior[d] + 1)`; all others are `fill`. A dimension
    without padding may be sharded; any other is gathered first.

    ```mlir
    %0 = shardc.pad %x low = [0, 2] interior = [0, 1] fill = 0.0 : tensor<4x3xf32> -> tensor<4x8xf32>
    ```

    Constraints:
    - C1: `low` and `interior` have one entry per dimension, none negative.
    - C2: the result has the rank and the element type of the operand.
    - C3: the last element of each dimension of the operand is in the result.
  }];
  let arguments = (ins Shardc_Tensor:$operand, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$interior, F64Attr:$fill);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `low` `=` $low `interior` `=` $interior `fill` `=` $fill attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether dimension `dim` is that of the operand as it is.
    bool isWhole(int64_t dim);
  }];
}

def Shardc_ConcatenateOp : Shardc_CoreOp<"concatenate"> {
  let summary = "Tensors one behind the other along a dimension";
  let description = [{
    All dimensions but `dim` may be sharded; that one is gathered first.

    ```mlir
    %0 = shardc.concatenate %a, %b dim = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
    ```

    Constraints:
    - C1: at least one operand, and `dim` is in range.
    - C2: operands have the type of the result but for dimension `dim`, whose sizes add up to that of the result.
  }];
  let arguments = (ins Variadic<Shardc_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operands `dim` `=` $dim attr-dict `:` functional-type($operands, $result)";
  let hasVerifier = 1;
}

def Shardc_PermuteRowsOp : Shardc_CoreOp<"permute_rows", [SameOperandsAndResultType]> {
  let summary = "The same rows in another order";
  let description = [{
    Row i along `dim` of the result is row `sources[i]` of the operand. Other
    dimensions may be sharded as they are, `dim` if each device has one row
    of it, which it then sends to another: a permute over the axes of `dim`.

    ```mlir
    %0 = shardc.permute_rows %x dim = 0 sources = [2, 0, 1] : tensor<3x8xf32>
    ```

    Constraints:
    - C1: `dim` is in range.
    - C2: `sources` is a permutation of the rows.
  }];
  let arguments = (ins Shardc_Tensor:$operand, I64Attr:$dim, DenseI64ArrayAttr:$sources);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "$operand `dim` `=` $dim `sources` `=` $sources attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Shardc_ConstantOp : Shardc_CoreOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A constant tensor";
  let description = [{
    ```mlir
    %0 = shardc.constant dense<0.0> : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Shardc_IotaOp : Shardc_CoreOp<"iota"> {
  let summary = "Each element's global index along one dimension";
  let description = [{
    ```mlir
    %0 = shardc.iota dim = 1 : tensor<4x8xi32>
    ```
    In a partitioned program `shard` says how the global tensor is sharded, and
    the values are global indices all the same.

    In a microbatch, where `dim` is the batch, `microbatch = [count, rows]` names
    the rows of the whole batch that run i takes: of every `count`·`rows` rows
    the i-th `rows`. Row r is row r/`rows`·`count`·`rows` + i·`rows` + r mod `rows`.

    Constraints:
    - C1: `dim` is in range.
    - C2: `microbatch` has two positive numbers.
  }];
  let arguments = (ins I64Attr:$dim, OptionalAttr<Shardc_ShardingAttr>:$shard,
      OptionalAttr<DenseI64ArrayAttr>:$microbatch);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = [{
    `dim` `=` $dim (`shard` `=` $shard^)? (`microbatch` `=` $microbatch^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Shardc_RandomUniformOp : Shardc_CoreOp<"random_uniform"> {
  let summary = "Counter-based uniform numbers in [0, 1)";
  let description = [{
    Philox4x32-10 (Salmon et al., SC11) of the global row-major element index,
    keyed by the run's seed, the step and `stream`; element i takes the first
    word of the block with counter (i low, i high, step, stream), its upper 24
    bits times 2^-24. The values do not depend on the mesh.

    ```mlir
    %0 = shardc.random_uniform %step stream = 3 : tensor<i32> -> tensor<4x8xf32>
    ```
    In a partitioned program `shard` and `global_shape` describe the global tensor.
    In a microbatch dimension 0 is the batch and `microbatch` names its rows, as
    for `iota`: the numbers are those of the whole batch.

    Constraints:
    - C1: `shard` and `global_shape` come together, of the rank of the result.
    - C2: `step` is a scalar.
    - C3: `microbatch` has two positive numbers, and the result a dimension.
  }];
  let arguments = (ins StaticShapeTensorOf<[I32]>:$step, I64Attr:$stream,
      OptionalAttr<Shardc_ShardingAttr>:$shard, OptionalAttr<DenseI64ArrayAttr>:$globalShape,
      OptionalAttr<DenseI64ArrayAttr>:$microbatch);
  let results = (outs StaticShapeTensorOf<[F32]>:$result);
  let assemblyFormat = [{
    $step `stream` `=` $stream (`shard` `=` $shard^)? (`global_shape` `=` $globalShape^)?
    (`microbatch` `=` $microbatch^)?
    attr-dict `:` type($step) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Shardc_MaskOp : Shardc_Op<"mask", [Pure, SameOperandsAndResultType]> {
  let summary = "Padding replaced by a value (partitioned programs)";
  let description = [{
    `shard` and `global_shape` describe the global tensor of which the operand
    is one device's shard; elements beyond its valid part, along the dimensions
    in `dims`, become `fill`.

    ```mlir
    %0 = shardc.mask %x dims = [0] fill = 0.0 shard = #shardc.sharding<@mesh, [{"data"}, {} ]>
        global_shape = [30, 16] : tensor<8x16xf32>
    ```

    Constraints:
    - C1: `shard` and `global_shape` have the rank of the operand.
    - C2: each dimension of the operand is ceil(global size / number of shards).
    - C3: `dims` are ascending and in range.
  }];
  let arguments = (ins Shardc_Tensor:$operand, DenseI64ArrayAttr:$dims, F64Attr:$fill,
      Shardc_ShardingAttr:$shard, DenseI64ArrayAttr:$globalShape);
  let results = (outs Shardc_Tensor:$result);
  let assemblyFormat = [{
    $operand `dims` `=` $dims `fill` `=` $fill `shard` `=` $shard
    `global_shape` `=` $globalShape attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

#endif
