//===- Decompose.cpp - Composites in terms of the tensor core -------------===//
//
// The one definition of each composite. Sums over rows and classes go straight
// to scalars, so that sharded operands need only scalar reductions.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

SmallVector<Value> LinearOp::decompose(OpBuilder &builder) {
  RankedTensorType type = getTensorType(getResult());
  int64_t last = type.getRank() - 1;
  Value product = dot(builder, getLoc(), getX(), getW(), {last}, {0});
  if (!getB())
    return {product};
  Value bias = broadcastTo(builder, getLoc(), getB(), type, {last});
  return {builder.create<AddOp>(getLoc(), product, bias)};
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

SmallVector<Value> ReluOp::decompose(OpBuilder &builder) {
  Value zero = constantSplat(builder, getLoc(), getTensorType(getResult()), 0);
  return {builder.create<MaxOp>(getLoc(), getOperand(), zero)};
}

SmallVector<Value> SigmoidOp::decompose(OpBuilder &builder) {
  // Correct at both ends: e^-x overflows to infinity, whose reciprocal is 0.
  Value one = constantSplat(builder, getLoc(), getTensorType(getResult()), 1);
  Value negated = builder.create<NegOp>(getLoc(), getOperand());
  Value exp = builder.create<ExpOp>(getLoc(), negated);
  Value divisor = builder.create<AddOp>(getLoc(), exp, one);
  return {builder.create<DivOp>(getLoc(), one, divisor)};
}

SmallVector<Value> SiluOp::decompose(OpBuilder &builder) {
  Value sigmoid = builder.create<SigmoidOp>(getLoc(), getOperand());
  return {builder.create<MulOp>(getLoc(), getOperand(), sigmoid)};
}

SmallVector<Value> GeluOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  RankedTensorType type = getTensorType(getResult());
  Value x = getOperand();
  auto constant = [&](double value) {
    return constantSplat(builder, loc, type, value);
  };
  auto mul = [&](Value lhs, Value rhs) -> Value {
    return builder.create<MulOp>(loc, lhs, rhs);
  };
  Value curve;
  if (getApproximate()) {
    Value cube = mul(mul(x, x), x);
    Value inner = builder.create<AddOp>(loc, x, mul(cube, constant(0.044715)));
    curve =
        builder.create<TanhOp>(loc, mul(inner, constant(std::sqrt(2 / M_PI))));
  } else {
    curve = builder.create<ErfOp>(loc, mul(x, constant(M_SQRT1_2)));
  }
  Value density = builder.create<AddOp>(loc, curve, constant(1));
  return {mul(mul(x, constant(0.5)), density)};
}

//===----------------------------------------------------------------------===//
// Layers
//===----------------------------------------------------------------------===//

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  Type element = getTensorType(getX()).getElementType();
  // Statistics of bf16 are computed in f32. Values per element that live until
  // the backward pass are rounded.
  Type wide = element.isBF16() ? Type(builder.getF32Type()) : element;
  auto round = [&](Value value) {
    return convertTo(builder, loc, value, element);
  };
  auto widen = [&](Value value) {
    return convertTo(builder, loc, value, wide);
  };
  RankedTensorType result = getTensorType(getX());
  RankedTensorType type = result.clone(wide);
  int64_t last = type.getRank() - 1;
  SmallVector<int64_t> leading = llvm::to_vector(llvm::seq<int64_t>(0, last));
  auto rows = RankedTensorType::get(type.getShape().drop_back(), wide);
  Value size = constantSplat(builder, loc, rows,
                             static_cast<double>(type.getDimSize(last)));
  auto mean = [&](Value value) -> Value {
    Value sum = reduce(builder, loc, ReductionKind::Sum, value, {last});
    return builder.create<DivOp>(loc, sum, size);
  };

  Value x = widen(getX());
  Value average = broadcastTo(builder, loc, mean(x), type, leading);
  Value centered = widen(round(builder.create<SubOp>(loc, x, average)));
  Value variance = mean(builder.create<MulOp>(loc, centered, centered));
  Value epsilon =
      constantSplat(builder, loc, rows, getEpsilon().convertToDouble());
  Value inverse = builder.create<RsqrtOp>(
      loc, builder.create<AddOp>(loc, variance, epsilon));
  Value normalised = round(builder.create<MulOp>(
      loc, centered, broadcastTo(builder, loc, inverse, type, leading)));
  Value scaled = builder.create<MulOp>(
      loc, normalised, broadcastTo(builder, loc, getScale(), result, {last}));
  return {builder.create<AddOp>(
      loc, scaled, broadcastTo(builder, loc, getBias(), result, {last}))};
}

SmallVector<Value> DropoutOp::decompose(OpBuilder &builder) {
  double rate = getRate().convertToDouble();
  auto function = getOperation()->getParentOfType<FunctionOpInterface>();
  Value step = function ? findStep(function) : BlockArgument();
  if (!step || rate == 0)
    return {getOperand()};

  Location loc = getLoc();
  RankedTensorType type = getTensorType(getResult());
  auto uniformType =
      RankedTensorType::get(type.getShape(), builder.getF32Type());
  Value uniform = builder.create<RandomUniformOp>(
      loc, uniformType, step, getStreamAttr(), ShardingAttr(),
      DenseI64ArrayAttr(), DenseI64ArrayAttr());
  Value keep = compare(builder, loc, CompareKind::GE, uniform,
                       constantSplat(builder, loc, uniformType, rate));
  Value scaled = builder.create<MulOp>(
      loc, getOperand(), constantSplat(builder, loc, type, 1 / (1 - rate)));
  Value zero = constantSplat(builder, loc, type, 0);
  return {builder.create<SelectOp>(loc, type, keep, scaled, zero)};
}

//===----------------------------------------------------------------------===//
// Losses
//===----------------------------------------------------------------------===//

CrossEntropyTerms shardc::buildCrossEntropyTerms(OpBuilder &builder,
                                                 Location loc, Value logits,
                                                 Value labels) {
  RankedTensorType type = getTensorType(logits);
  Value fixed = builder.create<StopGradientOp>(loc, logits);
  Value highest = reduce(builder, loc, ReductionKind::Max, fixed, {1});
  Arithmetic a(builder, loc, type);
  Value shifted = a.sub(logits, broadcastTo(builder, loc, highest, type, {0}));
  Value sum = reduce(builder, loc, ReductionKind::Sum, a.exp(shifted), {1});

  RankedTensorType indices = type.clone(getTensorType(labels).getElementType());
  Value classes = builder.create<IotaOp>(loc, indices, 1, ShardingAttr(),
                                         DenseI64ArrayAttr());
  Value isLabel = compare(builder, loc, CompareKind::EQ, classes,
                          broadcastTo(builder, loc, labels, indices, {0}));
  Value picked = a.select(isLabel, shifted, a.constant(0));
  return {builder.create<LogOp>(loc, sum), picked, highest};
}

SmallVector<Value> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  RankedTensorType type = getTensorType(getLogits());
  CrossEntropyTerms terms =
      buildCrossEntropyTerms(builder, getLoc(), getLogits(), getLabels());
  Value normaliser =
      reduceAll(builder, getLoc(), ReductionKind::Sum, terms.normaliser);
  Value picked = reduceAll(builder, getLoc(), ReductionKind::Sum, terms.picked);
  Arithmetic a(builder, getLoc(), getLoss());
  return {a.div(a.sub(normaliser, picked), a.constant(type.getDimSize(0)))};
}

SmallVector<Value> MseOp::decompose(OpBuilder &builder) {
  Location loc = getLoc();
  RankedTensorType type = getTensorType(getPrediction());
  Value difference = builder.create<SubOp>(loc, getPrediction(), getTarget());
  Value square = builder.create<MulOp>(loc, difference, difference);
  Value total = reduceAll(builder, loc, ReductionKind::Sum, square);
  Value count = constantSplat(builder, loc, getTensorType(getLoss()),
                              static_cast<double>(type.getNumElements()));
  return {builder.create<DivOp>(loc, total, count)};
}
