//===- ElementwiseOps.cpp - Elementwise ops of StableHLO ------------------===//

#include "Lowering.h"
#include "OpaqueText.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

static Type getElement(Value value) {
  return getTensorType(value).getElementType();
}

static bool isFloat(Value value) { return isa<FloatType>(getElement(value)); }

template <typename Op>
static LogicalResult lowerUnary(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  if (!isFloat(x))
    return emitError(op->getLoc())
           << op->getName() << " of " << getElement(x)
           << " is not supported: convert the operand to float32";
  return lowering.set(
      op, lowering.getBuilder().create<Op>(op->getLoc(), x.getType(), x));
}

template <typename Op>
static LogicalResult lowerBinary(Lowering &lowering, Operation *op) {
  Value lhs = lowering.get(op, 0), rhs = lowering.get(op, 1);
  return lowering.set(op,
                      lowering.getBuilder().create<Op>(op->getLoc(), lhs, rhs));
}

static LogicalResult lowerNegate(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  if (isFloat(x))
    return lowerUnary<NegOp>(lowering, op);
  Arithmetic a = lowering.at(op);
  return lowering.set(op, a.sub(a.constant(0), x));
}

static LogicalResult lowerAbs(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  if (isFloat(x))
    return lowerUnary<AbsOp>(lowering, op);
  Arithmetic a = lowering.at(op);
  return lowering.set(op, a.max(x, a.sub(a.constant(0), x)));
}

static LogicalResult lowerErfc(Lowering &lowering, Operation *op) {
  Arithmetic a = lowering.at(op);
  Value erf =
      lowering.getBuilder().create<ErfOp>(op->getLoc(), lowering.get(op, 0));
  return lowering.set(op, a.sub(a.constant(1), erf));
}

static LogicalResult lowerLogistic(Lowering &lowering, Operation *op) {
  Arithmetic a = lowering.at(op);
  Value e = a.exp(a.neg(lowering.get(op, 0)));
  return lowering.set(op, a.div(a.constant(1), a.add(a.constant(1), e)));
}

static LogicalResult lowerSquare(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  return lowering.set(op, lowering.at(op).mul(x, x));
}

static LogicalResult lowerIsFinite(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  Arithmetic a(lowering.getBuilder(), op->getLoc(), x);
  Value magnitude = lowering.getBuilder().create<AbsOp>(op->getLoc(), x);
  return lowering.set(
      op,
      a.less(magnitude, a.constant(std::numeric_limits<double>::infinity())));
}

/// x^n for a small integer n, by squaring.
static Value buildIntegerPower(Arithmetic &a, Value x, int64_t n) {
  Value power, square = x;
  for (int64_t rest = std::abs(n); rest > 0; rest /= 2) {
    if (rest % 2 == 1)
      power = power ? a.mul(power, square) : square;
    if (rest > 1)
      square = a.mul(square, square);
  }
  return n < 0 ? a.div(a.constant(1), power) : power;
}

static LogicalResult lowerPower(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0), y = lowering.get(op, 1);
  Arithmetic a = lowering.at(op);
  if (!isFloat(x))
    return emitError(op->getLoc())
           << "a power of integers is not supported: convert to float32";
  if (std::optional<double> exponent = matchSplat(y)) {
    if (*exponent == 0)
      return lowering.set(op, a.constant(1));
    if (*exponent == 0.5)
      return lowering.set(op, a.sqrt(x));
    if (std::trunc(*exponent) == *exponent && std::abs(*exponent) <= 64)
      return lowering.set(
          op, buildIntegerPower(a, x, static_cast<int64_t>(*exponent)));
  }
  std::optional<double> base = matchSplat(x);
  if (base && *base > 0)
    return lowering.set(op, a.exp(a.mul(y, a.constant(std::log(*base)))));
  return emitError(op->getLoc())
         << "a power is supported if its exponent is a constant integer or "
            "0.5, "
            "or its base a positive constant: write jnp.exp(y * jnp.log(x)) "
            "where x is positive";
}

static LogicalResult lowerCompare(Lowering &lowering, Operation *op) {
  StringRef direction = getLastWord(op->getAttr("comparison_direction"));
  std::optional<CompareKind> kind = symbolizeCompareKind(direction.lower());
  if (!kind)
    return emitError(op->getLoc())
           << "a comparison has the unknown direction '" << direction << "'";
  return lowering.set(op, compare(lowering.getBuilder(), op->getLoc(), *kind,
                                  lowering.get(op, 0), lowering.get(op, 1)));
}

static LogicalResult lowerSelect(Lowering &lowering, Operation *op) {
  Value predicate = lowering.get(op, 0);
  Arithmetic a = lowering.at(op);
  if (getTensorShape(predicate) != a.getType().getShape())
    predicate = lowering.broadcast(
        op->getLoc(), predicate,
        a.getType().clone(lowering.getBuilder().getI1Type()), {});
  return lowering.set(
      op, a.select(predicate, lowering.get(op, 1), lowering.get(op, 2)));
}

static LogicalResult lowerClamp(Lowering &lowering, Operation *op) {
  Arithmetic a = lowering.at(op);
  auto like = [&](unsigned index) {
    Value bound = lowering.get(op, index);
    return bound.getType() == a.getType()
               ? bound
               : lowering.broadcast(op->getLoc(), bound, a.getType(), {});
  };
  return lowering.set(op, a.min(a.max(lowering.get(op, 1), like(0)), like(2)));
}

static LogicalResult lowerConvert(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  Type element = lowering.at(op).getType().getElementType();
  if (element.isSignlessInteger(1) && element != getElement(x)) {
    Arithmetic a(lowering.getBuilder(), op->getLoc(), x);
    return lowering.set(op, compare(lowering.getBuilder(), op->getLoc(),
                                    CompareKind::NE, x, a.constant(0)));
  }
  return lowering.set(
      op, convertTo(lowering.getBuilder(), op->getLoc(), x, element));
}

/// The logical ops; those of integers are not supported.
template <typename Op>
static LogicalResult lowerLogical(Lowering &lowering, Operation *op) {
  if (!getElement(lowering.get(op, 0)).isSignlessInteger(1))
    return emitError(op->getLoc())
           << op->getName() << " on bits of integers is not supported";
  return lowerBinary<Op>(lowering, op);
}

static LogicalResult lowerNot(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  if (!getElement(x).isSignlessInteger(1))
    return emitError(op->getLoc())
           << op->getName() << " on bits of integers is not supported";
  return lowering.set(op,
                      compare(lowering.getBuilder(), op->getLoc(),
                              CompareKind::EQ, x, lowering.at(op).constant(0)));
}

ArrayRef<OpLowering> shardc::getElementwiseLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.negate", lowerNegate, 1},
      {"stablehlo.abs", lowerAbs, 1},
      {"stablehlo.sign", lowerUnary<SignOp>, 1},
      {"stablehlo.exponential", lowerUnary<ExpOp>, 1},
      {"stablehlo.exponential_minus_one", lowerUnary<Expm1Op>, 1},
      {"stablehlo.log", lowerUnary<LogOp>, 1},
      {"stablehlo.log_plus_one", lowerUnary<Log1pOp>, 1},
      {"stablehlo.sqrt", lowerUnary<SqrtOp>, 1},
      {"stablehlo.rsqrt", lowerUnary<RsqrtOp>, 1},
      {"stablehlo.tanh", lowerUnary<TanhOp>, 1},
      {"stablehlo.cosine", lowerUnary<CosOp>, 1},
      {"stablehlo.sine", lowerUnary<SinOp>, 1},
      {"stablehlo.logistic", lowerLogistic, 1},
      {"stablehlo.is_finite", lowerIsFinite, 1},
      {"chlo.erf", lowerUnary<ErfOp>, 1},
      {"chlo.erfc", lowerErfc, 1},
      {"chlo.square", lowerSquare, 1},
      {"stablehlo.add", lowerBinary<AddOp>, 2},
      {"stablehlo.subtract", lowerBinary<SubOp>, 2},
      {"stablehlo.multiply", lowerBinary<MulOp>, 2},
      {"stablehlo.divide", lowerBinary<DivOp>, 2},
      {"stablehlo.maximum", lowerBinary<MaxOp>, 2},
      {"stablehlo.minimum", lowerBinary<MinOp>, 2},
      {"stablehlo.power", lowerPower, 2},
      {"stablehlo.compare", lowerCompare, 2},
      {"stablehlo.select", lowerSelect, 3},
      {"stablehlo.clamp", lowerClamp, 3},
      {"stablehlo.convert", lowerConvert, 1},
      {"stablehlo.and", lowerLogical<MinOp>, 2},
      {"stablehlo.or", lowerLogical<MaxOp>, 2},
      {"stablehlo.not", lowerNot, 1},
  };
  return table;
}
