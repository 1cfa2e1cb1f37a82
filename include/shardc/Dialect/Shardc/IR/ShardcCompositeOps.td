//===- ShardcCompositeOps.td - Ops that decompose into the core --------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_SHARDCCOMPOSITEOPS_TD
#define SHARDC_DIALECT_SHARDC_IR_SHARDCCOMPOSITEOPS_TD

include "shardc/Dialect/Shardc/IR/ShardcOpBase.td"

class Shardc_CompositeOp<string mnemonic, list<Trait> traits = []>
    : Shardc_Op<mnemonic, traits # [Pure, Shardc_Decompose]>;

def Shardc_LinearOp : Shardc_CompositeOp<"linear"> {
  let summary = "x·w + b";
  let description = [{
    `x` is `[..., in]`, `w` is `[in, out]`, `b`, if there, `[out]`.

    ```mlir
    %0 = shardc.linear %x, %w, %b : tensor<32x16xf32>, tensor<16x64xf32>, tensor<64xf32> -> tensor<32x64xf32>
    ```

    Constraints:
    - C1: `w` has rank 2 and `x` at least rank 2.
    - C2: the last dimension of `x` is the first of `w`.
    - C3: `b` is `[out]`.
    - C4: the result is `x` with `out` as last dimension.
  }];
  let arguments = (ins Shardc_FloatTensor:$x, Shardc_FloatTensor:$w, Optional<Shardc_FloatTensor>:$b);
  let results = (outs Shardc_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $w (`,` $b^)? attr-dict `:` type($x) `,` type($w) (`,` type($b)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

class Shardc_ActivationOp<string mnemonic, string what, list<Trait> traits = []>
    : Shardc_CompositeOp<mnemonic, traits # [SameOperandsAndResultType]> {
  let summary = what;
  let description = "\n" # what # ", elementwise.\n\n```mlir\n%0 = shardc." # mnemonic # " %x : tensor<4x8xf32>\n```\n";
  let arguments = (ins Shardc_FloatTensor:$operand);
  let results = (outs Shardc_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

// These two have a gradient of their own, in terms of their result: that of
// relu is 0 at 0, where the gradient of its decomposition is 1/2.
def Shardc_ReluOp : Shardc_ActivationOp<"relu", "max(x, 0)", [Shardc_Vjp]>;
def Shardc_SigmoidOp : Shardc_ActivationOp<"sigmoid", "1 / (1 + e^-x)", [Shardc_Vjp]>;

def Shardc_SiluOp : Shardc_ActivationOp<"silu", "x / (1 + e^-x)">;

def Shardc_GeluOp : Shardc_CompositeOp<"gelu", [SameOperandsAndResultType]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    Exact, x/2·(1 + erf(x/√2)), or with `tanh` the approximation
    x/2·(1 + tanh(√(2/π)(x + 0.044715x³))) (Hendrycks and Gimpel, 2016).

    ```mlir
    %0 = shardc.gelu %x : tensor<4x8xf32>
    %1 = shardc.gelu tanh %x : tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Shardc_FloatTensor:$operand, UnitAttr:$approximate);
  let results = (outs Shardc_FloatTensor:$result);
  let assemblyFormat = "(`tanh` $approximate^)? $operand attr-dict `:` type($result)";
}

def Shardc_LayerNormOp : Shardc_CompositeOp<"layer_norm", [AllTypesMatch<["x", "result"]>, AllTypesMatch<["scale", "bias"]>]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    (x − mean)/√(variance + epsilon)·scale + bias.

    ```mlir
    %0 = shardc.layer_norm %x, %scale, %bias epsilon = 1.0e-6 : tensor<32x64xf32>, tensor<64xf32>
    ```

    Constraints:
    - C1: `scale` and `bias` have the size of the last dimension.
    - C2: `epsilon` is positive.
  }];
  let arguments = (ins Shardc_FloatTensor:$x, Shardc_FloatTensor:$scale, Shardc_FloatTensor:$bias, F64Attr:$epsilon);
  let results = (outs Shardc_FloatTensor:$result);
  let assemblyFormat = "$x `,` $scale `,` $bias `epsilon` `=` $epsilon attr-dict `:` type($x) `,` type($scale)";
  let hasVerifier = 1;
}

def Shardc_DropoutOp : Shardc_CompositeOp<"dropout", [SameOperandsAndResultType]> {
  let summary = "Elements dropped at random, the rest scaled by 1/(1-rate)";
  let description = [{
    Active in the train step only; the evaluation program passes its operand
    through. `stream` numbers the dropouts of a model; the mask depends on seed,
    step, stream and global index (see `random_uniform`).

    ```mlir
    %0 = shardc.dropout %x rate = 1.0e-1 stream = 0 : tensor<32x64xf32>
    ```

    Constraints:
    - C1: `rate` is in [0, 1).
  }];
  let arguments = (ins Shardc_FloatTensor:$operand, F64Attr:$rate, I64Attr:$stream);
  let results = (outs Shardc_FloatTensor:$result);
  let assemblyFormat = "$operand `rate` `=` $rate `stream` `=` $stream attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Shardc_SoftmaxCrossEntropyOp : Shardc_CompositeOp<"softmax_cross_entropy"> {
  let summary = "Mean negative log-likelihood of integer labels";
  let description = [{
    Mean over rows of log Σ exp(logits) − logits[label].

    ```mlir
    %loss = shardc.softmax_cross_entropy %logits, %y : tensor<32x10xf32>, tensor<32xi32> -> tensor<f32>
    ```

    Constraints:
    - C1: logits are `[rows, classes]`, labels `[rows]`.
    - C2: the result is a scalar of the element type of the logits.
  }];
  let arguments = (ins Shardc_FloatTensor:$logits, Shardc_IntTensor:$labels);
  let results = (outs Shardc_FloatTensor:$loss);
  let assemblyFormat = "$logits `,` $labels attr-dict `:` type($logits) `,` type($labels) `->` type($loss)";
  let hasVerifier = 1;
}

def Shardc_MseOp : Shardc_CompositeOp<"mse", [AllTypesMatch<["prediction", "target"]>]> {
  let summary = "Mean squared error over all elements";
  let description = [{
    ```mlir
    %loss = shardc.mse %o, %y : tensor<32x8xf32> -> tensor<f32>
    ```

    Constraints:
    - C1: the result is a scalar of the element type of the operands.
  }];
  let arguments = (ins Shardc_FloatTensor:$prediction, Shardc_FloatTensor:$target);
  let results = (outs Shardc_FloatTensor:$loss);
  let assemblyFormat = "$prediction `,` $target attr-dict `:` type($prediction) `->` type($loss)";
  let hasVerifier = 1;
}

#endif
