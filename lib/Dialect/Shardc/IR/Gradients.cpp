//===- Gradients.cpp - Reverse-mode differentiation of each op ------------===//
//
// The vector-Jacobian products (`buildVjp`) of the ops. Where an op is not
// smooth its gradient is JAX's: max and min share it between equal operands, a
// maximum over dimensions between its ties, and abs and relu have 0 at 0.
// Unused gradients are built as well and removed as dead code. Those of
// dot_general are in DotGradients.cpp.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Arithmetic.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

using Gradients = SmallVectorImpl<Value>;

//===----------------------------------------------------------------------===//
// Elementwise, one operand
//===----------------------------------------------------------------------===//

void NegOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  out[0] = Arithmetic(builder, getLoc(), grads[0]).neg(grads[0]);
}

void AbsOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.mul(grads[0], a.sign(getOperand()));
}

void SignOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}

void ExpOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  out[0] = Arithmetic(builder, getLoc(), grads[0]).mul(grads[0], getResult());
}

void Expm1Op::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.mul(grads[0], a.add(getResult(), a.constant(1)));
}

void LogOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  out[0] = Arithmetic(builder, getLoc(), grads[0]).div(grads[0], getOperand());
}

void Log1pOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.div(grads[0], a.add(getOperand(), a.constant(1)));
}

void SqrtOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.div(grads[0], a.mul(getResult(), a.constant(2)));
}

void RsqrtOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  Value slope = a.mul(a.constant(-0.5), a.div(getResult(), getOperand()));
  out[0] = a.mul(grads[0], slope);
}

void TanhOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  // (1 - t)(1 + t) keeps its digits where t is near 1.
  Arithmetic a(builder, getLoc(), grads[0]);
  Value one = a.constant(1);
  Value slope = a.mul(a.sub(one, getResult()), a.add(getResult(), one));
  out[0] = a.mul(grads[0], slope);
}

void ErfOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  Value exp = a.exp(a.neg(a.mul(getOperand(), getOperand())));
  out[0] = a.mul(grads[0], a.mul(exp, a.constant(M_2_SQRTPI)));
}

void CosOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.neg(a.mul(grads[0], a.sin(getOperand())));
}

void SinOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.mul(grads[0], a.cos(getOperand()));
}

void FloorOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}

void StopGradientOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}

void ConvertOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  RankedTensorType type = getTensorType(getOperand());
  if (isa<FloatType>(type.getElementType()))
    out[0] = convertTo(builder, getLoc(), grads[0], type.getElementType());
}

void ReluOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  // In terms of the result: the operand need not live until the backward pass.
  Arithmetic a(builder, getLoc(), grads[0]);
  Value zero = a.constant(0);
  Value positive =
      compare(builder, getLoc(), CompareKind::GT, getResult(), zero);
  out[0] = a.select(positive, grads[0], zero);
}

void SigmoidOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  Value slope = a.mul(getResult(), a.sub(a.constant(1), getResult()));
  out[0] = a.mul(grads[0], slope);
}

//===----------------------------------------------------------------------===//
// Elementwise, several operands
//===----------------------------------------------------------------------===//

void AddOp::buildVjp(OpBuilder &, ValueRange grads, Gradients &out) {
  out[0] = out[1] = grads[0];
}

void SubOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  out[0] = grads[0];
  out[1] = Arithmetic(builder, getLoc(), grads[0]).neg(grads[0]);
}

void MulOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.mul(grads[0], getRhs());
  out[1] = a.mul(grads[0], getLhs());
}

void DivOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  out[0] = a.div(grads[0], getRhs());
  out[1] = a.neg(a.div(a.mul(grads[0], getResult()), getRhs()));
}

void RemainderOp::buildVjp(OpBuilder &builder, ValueRange grads,
                           Gradients &out) {
  // x - trunc(x / y)·y, where the quotient is a constant.
  Arithmetic a(builder, getLoc(), grads[0]);
  Value quotient = a.div(a.sub(getLhs(), getResult()), getRhs());
  out[0] = grads[0];
  out[1] = a.neg(a.mul(grads[0], quotient));
}

void PowerOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  // As in JAX: x^0 has no slope, also at 0, and the logarithm of 0 counts as 0.
  Location loc = getLoc();
  Arithmetic a(builder, loc, grads[0]);
  Value zero = a.constant(0), one = a.constant(1);
  Value isConstant = compare(builder, loc, CompareKind::EQ, getRhs(), zero);
  Value exponent = a.select(isConstant, one, a.sub(getRhs(), one));
  Value slope = a.mul(getRhs(), a.power(getLhs(), exponent));
  out[0] = a.mul(grads[0], a.select(isConstant, zero, slope));
  Value isZero = compare(builder, loc, CompareKind::EQ, getLhs(), zero);
  Value log = builder.create<LogOp>(loc, a.select(isZero, one, getLhs()));
  out[1] = a.mul(grads[0], a.mul(log, getResult()));
}

/// Max and min: the gradient goes to the operand that `wins` over the other,
/// half of it to each where they are equal.
static void buildExtremumVjp(OpBuilder &builder, Location loc, CompareKind wins,
                             Value lhs, Value rhs, Value grad, Gradients &out) {
  Arithmetic a(builder, loc, grad);
  Value zero = a.constant(0);
  Value half = a.mul(grad, a.constant(0.5));
  Value equal = compare(builder, loc, CompareKind::EQ, lhs, rhs);
  auto share = [&](Value mine, Value other) {
    Value won = compare(builder, loc, wins, mine, other);
    return a.select(won, grad, a.select(equal, half, zero));
  };
  out[0] = share(lhs, rhs);
  out[1] = share(rhs, lhs);
}

void MaxOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  buildExtremumVjp(builder, getLoc(), CompareKind::GT, getLhs(), getRhs(),
                   grads[0], out);
}

void MinOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  buildExtremumVjp(builder, getLoc(), CompareKind::LT, getLhs(), getRhs(),
                   grads[0], out);
}

void CompareOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}

void SelectOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Arithmetic a(builder, getLoc(), grads[0]);
  Value zero = a.constant(0);
  out[1] = a.select(getPredicate(), grads[0], zero);
  out[2] = a.select(getPredicate(), zero, grads[0]);
}

//===----------------------------------------------------------------------===//
// Reduction
//===----------------------------------------------------------------------===//

void ReduceOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  Location loc = getLoc();
  RankedTensorType type = getTensorType(getOperand());
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      kept.push_back(dim);
  if (getKind() == ReductionKind::Sum) {
    out[0] = broadcastTo(builder, loc, grads[0], type, kept);
    return;
  }

  Arithmetic a(builder, loc, getOperand());
  Value highest = broadcastTo(builder, loc, getResult(), type, kept);
  Value isHighest =
      compare(builder, loc, CompareKind::EQ, getOperand(), highest);
  Value zero = a.constant(0);
  Value indicator = a.select(isHighest, a.constant(1), zero);
  Value ties = reduce(builder, loc, ReductionKind::Sum, indicator, getDims());
  Value share = builder.create<DivOp>(loc, grads[0], ties);
  out[0] =
      a.select(isHighest, broadcastTo(builder, loc, share, type, kept), zero);
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

void BroadcastOp::buildVjp(OpBuilder &builder, ValueRange grads,
                           Gradients &out) {
  SmallVector<int64_t> added;
  for (int64_t dim = 0; dim < getTensorType(getResult()).getRank(); ++dim)
    if (!llvm::is_contained(getDims(), dim))
      added.push_back(dim);
  out[0] = reduce(builder, getLoc(), ReductionKind::Sum, grads[0], added);
}

void TransposeOp::buildVjp(OpBuilder &builder, ValueRange grads,
                           Gradients &out) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [index, dim] : llvm::enumerate(getPermutation()))
    inverse[dim] = index;
  out[0] = builder.create<TransposeOp>(getLoc(), getOperand().getType(),
                                       grads[0], inverse);
}

void ReshapeOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  out[0] =
      builder.create<ReshapeOp>(getLoc(), getOperand().getType(), grads[0]);
}

void ExtractSliceOp::buildVjp(OpBuilder &builder, ValueRange grads,
                              Gradients &out) {
  SmallVector<int64_t> interior(getStrides());
  for (int64_t &number : interior)
    --number;
  out[0] = builder.create<PadOp>(getLoc(), getOperand().getType(), grads[0],
                                 getStarts(), interior, APFloat(0.0));
}

void PadOp::buildVjp(OpBuilder &builder, ValueRange grads, Gradients &out) {
  SmallVector<int64_t> strides(getInterior());
  for (int64_t &stride : strides)
    ++stride;
  out[0] = builder.create<ExtractSliceOp>(getLoc(), getOperand().getType(),
                                          grads[0], getLow(), strides);
}

void ConcatenateOp::buildVjp(OpBuilder &builder, ValueRange grads,
                             Gradients &out) {
  int64_t rank = getTensorType(getResult()).getRank();
  SmallVector<int64_t> starts(rank, 0), strides(rank, 1);
  for (auto [index, operand] : llvm::enumerate(getOperands())) {
    out[index] = builder.create<ExtractSliceOp>(getLoc(), operand.getType(),
                                                grads[0], starts, strides);
    starts[getDim()] += getTensorType(operand).getDimSize(getDim());
  }
}

void PermuteRowsOp::buildVjp(OpBuilder &builder, ValueRange grads,
                             Gradients &out) {
  out[0] = builder.create<PermuteRowsOp>(getLoc(), grads[0].getType(), grads[0],
                                         getDim(),
                                         invertPermutationVector(getSources()));
}

void ShardingConstraintOp::buildVjp(OpBuilder &builder, ValueRange grads,
                                    Gradients &out) {
  // As in JAX the gradient is held to the same sharding.
  out[0] = grads[0];
  if (!getSharding() || !getSharding()->getUnreduced().empty())
    return;
  auto constraint = builder.create<ShardingConstraintOp>(
      getLoc(), grads[0].getType(), grads[0], *getSharding(), ArrayAttr());
  if (Attribute cause = (*this)->getAttr(manualAttrName))
    constraint->setAttr(manualAttrName, cause);
  out[0] = constraint;
}

//===----------------------------------------------------------------------===//
// Ops without a gradient
//===----------------------------------------------------------------------===//

void ConstantOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void IotaOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void AndOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void OrOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void XorOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void ShiftLeftOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void ShiftRightLogicalOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void ShiftRightArithmeticOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void BitcastOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
void RandomUniformOp::buildVjp(OpBuilder &, ValueRange, Gradients &) {}
