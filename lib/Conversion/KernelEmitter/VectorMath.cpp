//===- VectorMath.cpp - Arithmetic on scalars and lanes -------------------===//

#include "shardc/Conversion/KernelEmitter/VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"

#include <limits>

using namespace mlir;

namespace shardc {

Type VectorMath::getElement(Value value) {
  return getElementTypeOrSelf(value.getType());
}

bool VectorMath::isVector(Value value) {
  return isa<VectorType>(value.getType());
}

Type VectorMath::getTypeLike(Type element, Value like) {
  auto vector = dyn_cast<VectorType>(like.getType());
  return vector ? Type(vector.clone(element)) : element;
}

Value VectorMath::constant(Type element, double value) {
  if (auto floatType = dyn_cast<FloatType>(element))
    return builder.create<arith::ConstantOp>(
        loc, builder.getFloatAttr(floatType, value));
  return constantInt(element, static_cast<int64_t>(value));
}

Value VectorMath::constantInt(Type element, int64_t value) {
  return builder.create<arith::ConstantOp>(
      loc, builder.getIntegerAttr(element, value));
}

Value VectorMath::constantLike(Value like, double value) {
  Type element = getElement(like);
  Attribute attr;
  if (isa<FloatType>(element))
    attr = builder.getFloatAttr(element, value);
  else
    attr = builder.getIntegerAttr(element, static_cast<int64_t>(value));
  if (isVector(like))
    attr = DenseElementsAttr::get(cast<VectorType>(like.getType()), attr);
  return builder.create<arith::ConstantOp>(loc, cast<TypedAttr>(attr));
}

Value VectorMath::splat(Value value) {
  if (isVector(value))
    return value;
  auto type = VectorType::get({numLanes}, value.getType());
  Attribute constant;
  if (matchPattern(value, m_Constant(&constant)))
    return builder.create<arith::ConstantOp>(
        loc, DenseElementsAttr::get(type, constant));
  return builder.create<vector::SplatOp>(loc, type, value);
}

void VectorMath::unify(Value &lhs, Value &rhs) {
  if (isVector(lhs) == isVector(rhs))
    return;
  lhs = splat(lhs);
  rhs = splat(rhs);
}

Value VectorMath::add(Value lhs, Value rhs) {
  unify(lhs, rhs);
  if (isa<FloatType>(getElement(lhs)))
    return builder.create<arith::AddFOp>(loc, lhs, rhs);
  if (getElement(lhs).isInteger(1))
    return builder.create<arith::OrIOp>(loc, lhs, rhs);
  return builder.create<arith::AddIOp>(loc, lhs, rhs);
}

Value VectorMath::sub(Value lhs, Value rhs) {
  unify(lhs, rhs);
  if (isa<FloatType>(getElement(lhs)))
    return builder.create<arith::SubFOp>(loc, lhs, rhs);
  return builder.create<arith::SubIOp>(loc, lhs, rhs);
}

Value VectorMath::mul(Value lhs, Value rhs) {
  unify(lhs, rhs);
  if (isa<FloatType>(getElement(lhs)))
    return builder.create<arith::MulFOp>(loc, lhs, rhs);
  return builder.create<arith::MulIOp>(loc, lhs, rhs);
}

Value VectorMath::div(Value lhs, Value rhs) {
  unify(lhs, rhs);
  if (isa<FloatType>(getElement(lhs)))
    return builder.create<arith::DivFOp>(loc, lhs, rhs);
  // Division by 0, and of the lowest number by -1, would trap.
  Value zero = constantLike(rhs, 0), minusOne = constantLike(rhs, -1);
  Value one = constantLike(rhs, 1);
  Value isZero = compareInt(arith::CmpIPredicate::eq, rhs, zero);
  Value isMinusOne = compareInt(arith::CmpIPredicate::eq, rhs, minusOne);
  Value safe = select(isZero, one, select(isMinusOne, one, rhs));
  Value quotient = builder.create<arith::DivSIOp>(loc, lhs, safe);
  quotient = select(isMinusOne, sub(zero, lhs), quotient);
  return select(isZero, minusOne, quotient);
}

Value VectorMath::fma(Value lhs, Value rhs, Value acc) {
  unify(lhs, rhs);
  unify(lhs, acc);
  unify(rhs, acc);
  if (isa<FloatType>(getElement(lhs)))
    return builder.create<math::FmaOp>(loc, lhs, rhs, acc);
  return add(mul(lhs, rhs), acc);
}

Value VectorMath::max(Value lhs, Value rhs) {
  unify(lhs, rhs);
  if (getElement(lhs).isInteger(1))
    return builder.create<arith::OrIOp>(loc, lhs, rhs);
  if (!isa<FloatType>(getElement(lhs)))
    return builder.create<arith::MaxSIOp>(loc, lhs, rhs);
  // Unordered or greater: a NaN on the left stays; with a constant on the
  // right, which is never NaN here, one compare is enough.
  Value greater = compareFloat(arith::CmpFPredicate::UGT, lhs, rhs);
  Value result = select(greater, lhs, rhs);
  if (matchPattern(rhs, m_Constant()))
    return result;
  Value rhsIsNaN = compareFloat(arith::CmpFPredicate::UNO, rhs, rhs);
  return select(rhsIsNaN, rhs, result);
}

Value VectorMath::min(Value lhs, Value rhs) {
  unify(lhs, rhs);
  if (getElement(lhs).isInteger(1))
    return builder.create<arith::AndIOp>(loc, lhs, rhs);
  if (!isa<FloatType>(getElement(lhs)))
    return builder.create<arith::MinSIOp>(loc, lhs, rhs);
  Value less = compareFloat(arith::CmpFPredicate::ULT, lhs, rhs);
  Value result = select(less, lhs, rhs);
  if (matchPattern(rhs, m_Constant()))
    return result;
  Value rhsIsNaN = compareFloat(arith::CmpFPredicate::UNO, rhs, rhs);
  return select(rhsIsNaN, rhs, result);
}

Value VectorMath::select(Value predicate, Value onTrue, Value onFalse) {
  unify(onTrue, onFalse);
  if (isVector(predicate)) {
    onTrue = splat(onTrue);
    onFalse = splat(onFalse);
  }
  return builder.create<arith::SelectOp>(loc, predicate, onTrue, onFalse);
}

Value VectorMath::compareFloat(arith::CmpFPredicate predicate, Value lhs,
                               Value rhs) {
  unify(lhs, rhs);
  return builder.create<arith::CmpFOp>(loc, predicate, lhs, rhs);
}

Value VectorMath::compareInt(arith::CmpIPredicate predicate, Value lhs,
                             Value rhs) {
  unify(lhs, rhs);
  return builder.create<arith::CmpIOp>(loc, predicate, lhs, rhs);
}

Value VectorMath::convert(Value value, Type element) {
  Type from = getElement(value);
  if (from == element)
    return value;
  Type type = getTypeLike(element, value);
  auto toFloat = dyn_cast<FloatType>(element);
  if (auto fromFloat = dyn_cast<FloatType>(from)) {
    if (toFloat && toFloat.getWidth() > fromFloat.getWidth())
      return builder.create<arith::ExtFOp>(loc, type, value);
    if (toFloat)
      return builder.create<arith::TruncFOp>(loc, type, value);
    if (element.isInteger(1))
      return compareFloat(arith::CmpFPredicate::UNE, value,
                          constantLike(value, 0.0));
    // The conversion itself is undefined out of range: clamp first. The upper
    // bound is the largest float below 2^(bits-1).
    int bits = element.getIntOrFloatBitWidth();
    int precision = fromFloat.getFPMantissaWidth();
    double low = -std::ldexp(1.0, bits - 1);
    double high = bits - 1 <= precision
                      ? std::ldexp(1.0, bits - 1) - 1
                      : -low - std::ldexp(1.0, bits - 1 - precision);
    Value x = value;
    Value isNaN = compareFloat(arith::CmpFPredicate::UNO, x, x);
    x = select(isNaN, constantLike(x, 0.0), x);
    Value tooLow =
        compareFloat(arith::CmpFPredicate::OLT, x, constantLike(x, low));
    Value tooHigh =
        compareFloat(arith::CmpFPredicate::OGT, x, constantLike(x, high));
    Value inRange = select(tooLow, constantLike(x, low),
                           select(tooHigh, constantLike(x, high), x));
    Value result = builder.create<arith::FPToSIOp>(loc, type, inRange);
    int64_t highest = bits == 64 ? std::numeric_limits<int64_t>::max()
                                 : (int64_t(1) << (bits - 1)) - 1;
    Value saturated = constantInt(element, highest);
    return select(tooHigh, saturated, result);
  }
  if (toFloat) {
    if (from.isInteger(1))
      return builder.create<arith::UIToFPOp>(loc, type, value);
    return builder.create<arith::SIToFPOp>(loc, type, value);
  }
  if (element.isInteger(1))
    return compareInt(arith::CmpIPredicate::ne, value, constantLike(value, 0));
  if (from.isInteger(1))
    return builder.create<arith::ExtUIOp>(loc, type, value);
  if (element.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth())
    return builder.create<arith::ExtSIOp>(loc, type, value);
  return builder.create<arith::TruncIOp>(loc, type, value);
}

Value VectorMath::bitAnd(Value lhs, Value rhs) {
  unify(lhs, rhs);
  return builder.create<arith::AndIOp>(loc, lhs, rhs);
}

Value VectorMath::bitOr(Value lhs, Value rhs) {
  unify(lhs, rhs);
  return builder.create<arith::OrIOp>(loc, lhs, rhs);
}

Value VectorMath::bitXor(Value lhs, Value rhs) {
  unify(lhs, rhs);
  return builder.create<arith::XOrIOp>(loc, lhs, rhs);
}

/// Whether `amount` leaves any bit in place; the shift is undefined otherwise.
static Value isInWidth(VectorMath &math, Value amount) {
  unsigned bits = VectorMath::getElement(amount).getIntOrFloatBitWidth();
  return math.compareInt(arith::CmpIPredicate::ult, amount,
                         math.constantLike(amount, bits));
}

Value VectorMath::shiftLeft(Value x, Value amount) {
  unify(x, amount);
  Value shifted = builder.create<arith::ShLIOp>(loc, x, amount);
  return select(isInWidth(*this, amount), shifted, constantLike(x, 0));
}

Value VectorMath::shiftRightLogical(Value x, Value amount) {
  unify(x, amount);
  Value shifted = builder.create<arith::ShRUIOp>(loc, x, amount);
  return select(isInWidth(*this, amount), shifted, constantLike(x, 0));
}

Value VectorMath::shiftRightArithmetic(Value x, Value amount) {
  unify(x, amount);
  Value most =
      constantLike(amount, getElement(amount).getIntOrFloatBitWidth() - 1);
  amount = select(isInWidth(*this, amount), amount, most);
  return builder.create<arith::ShRSIOp>(loc, x, amount);
}

Value VectorMath::bitcast(Value x, Type element) {
  return builder.create<arith::BitcastOp>(loc, getTypeLike(element, x), x);
}

Value VectorMath::neg(Value x) {
  if (isa<FloatType>(getElement(x)))
    return builder.create<arith::NegFOp>(loc, x);
  return sub(constantLike(x, 0), x);
}

Value VectorMath::abs(Value x) {
  if (isa<FloatType>(getElement(x)))
    return builder.create<math::AbsFOp>(loc, x);
  return max(x, neg(x));
}

Value VectorMath::sqrt(Value x) { return builder.create<math::SqrtOp>(loc, x); }

Value VectorMath::rsqrt(Value x) { return div(constantLike(x, 1.0), sqrt(x)); }

Value VectorMath::sign(Value x) {
  Value zero = constantLike(x, 0.0);
  Value one = constantLike(x, 1.0), minusOne = constantLike(x, -1.0);
  // Zeros and NaN are returned as they are.
  Value positive = compareFloat(arith::CmpFPredicate::OGT, x, zero);
  Value negative = compareFloat(arith::CmpFPredicate::OLT, x, zero);
  return select(positive, one, select(negative, minusOne, x));
}

Value VectorMath::floor(Value x) {
  // Adding and subtracting 2^(mantissa bits) rounds what is below it to an
  // integer; what is not is one.
  Value whole = constantLike(x, getElement(x).isF64() ? 0x1p52 : 0x1p23);
  Value magnitude = abs(x);
  Value rounded = builder.create<math::CopySignOp>(
      loc, sub(add(magnitude, whole), whole), x);
  Value tooHigh = compareFloat(arith::CmpFPredicate::OGT, rounded, x);
  rounded = select(tooHigh, sub(rounded, constantLike(x, 1.0)), rounded);
  Value isBelow = compareFloat(arith::CmpFPredicate::OLT, magnitude, whole);
  return select(isBelow, rounded, x);
}

Value VectorMath::roundToBF16(Value value) {
  // To nearest, ties to even; NaN stays quiet. The result is again an f32.
  Type i32 = getTypeLike(builder.getI32Type(), value);
  Value bits = builder.create<arith::BitcastOp>(loc, i32, value);
  Value sixteen = constantLike(bits, 16);
  Value odd = builder.create<arith::AndIOp>(
      loc, builder.create<arith::ShRUIOp>(loc, bits, sixteen),
      constantLike(bits, 1));
  Value bias = add(odd, constantLike(bits, 0x7fff));
  Value rounded = add(bits, bias);
  Value isNaN = compareFloat(arith::CmpFPredicate::UNO, value, value);
  Value quiet =
      builder.create<arith::OrIOp>(loc, bits, constantLike(bits, 0x400000));
  rounded = select(isNaN, quiet, rounded);
  Value mask = constantLike(bits, -65536.0);
  rounded = builder.create<arith::AndIOp>(loc, rounded, mask);
  return builder.create<arith::BitcastOp>(loc, value.getType(), rounded);
}

Value VectorMath::getIdentity(ReductionKind kind, Type type) {
  if (kind == ReductionKind::Sum)
    return constant(type, 0.0);
  if (isa<FloatType>(type))
    return constant(type, -std::numeric_limits<double>::infinity());
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 1)
    return constantInt(type, 0);
  return constantInt(type, bits == 64 ? std::numeric_limits<int64_t>::min()
                                      : -(int64_t(1) << (bits - 1)));
}

Value VectorMath::combine(ReductionKind kind, Value lhs, Value rhs) {
  return kind == ReductionKind::Sum ? add(lhs, rhs) : max(lhs, rhs);
}

Value VectorMath::combineLanes(ReductionKind kind, Value value) {
  if (!isVector(value))
    return value;
  for (int64_t width = numLanes / 2; width >= 1; width /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < width; ++lane) {
      low.push_back(lane);
      high.push_back(lane + width);
    }
    Value lhs = builder.create<vector::ShuffleOp>(loc, value, value, low);
    Value rhs = builder.create<vector::ShuffleOp>(loc, value, value, high);
    value = combine(kind, lhs, rhs);
  }
  return getFirstLane(value);
}

Value VectorMath::getFirstLane(Value value) {
  return builder.create<vector::ExtractOp>(loc, value, int64_t(0));
}

Value VectorMath::maskLanes(Value value, int64_t lanes, Value fill) {
  if (lanes == 0 || lanes >= numLanes)
    return value;
  return builder.create<arith::SelectOp>(loc, getLaneMask(lanes), splat(value),
                                         splat(fill));
}

Value VectorMath::getLaneMask(int64_t lanes) {
  SmallVector<bool> bits;
  for (int64_t lane = 0; lane < numLanes; ++lane)
    bits.push_back(lane < lanes);
  auto type = VectorType::get({numLanes}, builder.getI1Type());
  return builder.create<arith::ConstantOp>(loc,
                                           DenseElementsAttr::get(type, bits));
}

} // namespace shardc
