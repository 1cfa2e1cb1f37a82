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

static LogicalResult lowerSign(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  if (isFloat(x))
    return lowerUnary<SignOp>(lowering, op);
  Arithmetic a = lowering.at(op);
  return lowering.set(op, a.min(a.max(x, a.constant(-1)), a.constant(1)));
}

static LogicalResult lowerTan(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  Arithmetic a = lowering.at(op);
  return lowering.set(op, a.div(a.sin(x), a.cos(x)));
}

static Value buildFloor(Lowering &lowering, Operation *op, Value x) {
  return lowering.getBuilder().create<FloorOp>(op->getLoc(), x);
}

static LogicalResult lowerCeil(Lowering &lowering, Operation *op) {
  Arithmetic a = lowering.at(op);
  return lowering.set(
      op, a.neg(buildFloor(lowering, op, a.neg(lowering.get(op, 0)))));
}

/// The nearest integer. x - floor(x) is exact; of two integers as near
/// `isUpper` chooses.
static Value buildRound(Lowering &lowering, Operation *op, Value x,
                        function_ref<Value(Value lower)> isUpper) {
  OpBuilder &builder = lowering.getBuilder();
  Arithmetic a(builder, op->getLoc(), x);
  Value lower = buildFloor(lowering, op, x);
  Value beyond = a.sub(x, lower), half = a.constant(0.5);
  Value isBeyond =
      compare(builder, op->getLoc(), CompareKind::GT, beyond, half);
  Value isTie = compare(builder, op->getLoc(), CompareKind::EQ, beyond, half);
  Arithmetic truth(builder, op->getLoc(), isTie);
  return a.select(truth.max(isBeyond, truth.min(isTie, isUpper(lower))),
                  a.add(lower, a.constant(1)), lower);
}

static LogicalResult lowerRoundToEven(Lowering &lowering, Operation *op) {
  OpBuilder &builder = lowering.getBuilder();
  Arithmetic a = lowering.at(op);
  auto isOdd = [&](Value lower) {
    Value half = a.mul(lower, a.constant(0.5));
    return compare(builder, op->getLoc(), CompareKind::NE, half,
                   buildFloor(lowering, op, half));
  };
  return lowering.set(op, buildRound(lowering, op, lowering.get(op, 0), isOdd));
}

static LogicalResult lowerRoundAwayFromZero(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  OpBuilder &builder = lowering.getBuilder();
  Arithmetic a = lowering.at(op);
  Value magnitude = builder.create<AbsOp>(op->getLoc(), x);
  auto always = [&](Value lower) {
    return compare(builder, op->getLoc(), CompareKind::EQ, lower, lower);
  };
  return lowering.set(
      op, a.mul(a.sign(x), buildRound(lowering, op, magnitude, always)));
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
  std::optional<double> exponent = matchSplat(y);
  if (!isFloat(x) && !(exponent && *exponent >= 0 && *exponent <= 64))
    return emitError(op->getLoc())
           << "a power of integers is supported if the exponent is a constant "
              "from 0 to 64: convert the operands to float32";
  if (exponent) {
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
  return lowering.set(op, a.power(x, y));
}

FailureOr<CompareKind> shardc::getDirection(Operation *op) {
  StringRef direction = getLastWord(op->getAttr("comparison_direction"));
  std::optional<CompareKind> kind = symbolizeCompareKind(direction.lower());
  if (!kind)
    return emitError(op->getLoc())
           << "a comparison has the unknown direction '" << direction << "'";
  return *kind;
}

static LogicalResult lowerCompare(Lowering &lowering, Operation *op) {
  FailureOr<CompareKind> kind = getDirection(op);
  if (failed(kind))
    return failure();
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

/// jax.checkpoint with a policy rounds values to the type that they have
/// anyway, so that XLA does not merge them.
static LogicalResult lowerReducePrecision(Lowering &lowering, Operation *op) {
  auto type = dyn_cast<FloatType>(getElement(lowering.get(op, 0)));
  auto exponent = op->getAttrOfType<IntegerAttr>("exponent_bits"),
       mantissa = op->getAttrOfType<IntegerAttr>("mantissa_bits");
  if (!type || !exponent || !mantissa)
    return emitError(op->getLoc())
           << "stablehlo.reduce_precision rounds floats to bits of an exponent "
              "and of a mantissa";
  // The precision of MLIR counts the leading 1, which is not stored.
  int64_t stored = type.getFPMantissaWidth() - 1;
  if (mantissa.getInt() < stored ||
      exponent.getInt() < type.getWidth() - 1 - stored)
    return emitError(op->getLoc())
           << "rounding " << type << " to " << exponent.getInt()
           << " bits of the exponent and " << mantissa.getInt()
           << " of the mantissa is not supported: use "
              "x.astype(jnp.bfloat16).astype(jnp.float32)";
  return lowering.set(op, lowering.get(op, 0));
}

/// As XLA computes it, by two polynomials (Giles, "Approximating the erfinv
/// function", GPU Computing Gems 2, 2011).
static LogicalResult lowerErfInv(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  if (getElement(x).isF64())
    return emitError(loc) << "erf_inv, of which normal numbers are made, of "
                             "float64 is not supported: use float32";
  // In f32, whatever the type.
  Type element = getElement(x);
  Value y = convertTo(builder, loc, x, builder.getF32Type());
  Arithmetic a(builder, loc, y);
  Value w = a.neg(builder.create<Log1pOp>(loc, a.neg(a.mul(y, y))));
  Value isCentral = a.less(w, a.constant(5));
  Value argument = a.select(isCentral, a.sub(w, a.constant(2.5)),
                            a.sub(a.sqrt(w), a.constant(3)));
  static constexpr std::pair<double, double> coefficients[] = {
      {2.81022636e-08, -0.000200214257}, {3.43273939e-07, 0.000100950558},
      {-3.5233877e-06, 0.00134934322},   {-4.39150654e-06, -0.00367342844},
      {0.00021858087, 0.00573950773},    {-0.00125372503, -0.0076224613},
      {-0.00417768164, 0.00943887047},   {0.246640727, 1.00167406},
      {1.50140941, 2.83297682}};
  Value sum;
  for (auto [central, outer] : coefficients) {
    Value coefficient =
        a.select(isCentral, a.constant(central), a.constant(outer));
    sum = sum ? a.add(coefficient, a.mul(sum, argument)) : coefficient;
  }
  Value isOne = compare(builder, loc, CompareKind::EQ,
                        builder.create<AbsOp>(loc, y), a.constant(1));
  Value infinite =
      a.mul(y, a.constant(std::numeric_limits<double>::infinity()));
  return lowering.set(op, convertTo(builder, loc,
                                    a.select(isOne, infinite, a.mul(sum, y)),
                                    element));
}

ArrayRef<OpLowering> shardc::getElementwiseLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.negate", lowerNegate, 1},
      {"stablehlo.abs", lowerAbs, 1},
      {"stablehlo.sign", lowerSign, 1},
      {"stablehlo.floor", lowerUnary<FloorOp>, 1},
      {"stablehlo.ceil", lowerCeil, 1},
      {"stablehlo.round_nearest_even", lowerRoundToEven, 1},
      {"stablehlo.round_nearest_afz", lowerRoundAwayFromZero, 1},
      {"stablehlo.exponential", lowerUnary<ExpOp>, 1},
      {"stablehlo.exponential_minus_one", lowerUnary<Expm1Op>, 1},
      {"stablehlo.log", lowerUnary<LogOp>, 1},
      {"stablehlo.log_plus_one", lowerUnary<Log1pOp>, 1},
      {"stablehlo.sqrt", lowerUnary<SqrtOp>, 1},
      {"stablehlo.rsqrt", lowerUnary<RsqrtOp>, 1},
      {"stablehlo.tanh", lowerUnary<TanhOp>, 1},
      {"stablehlo.cosine", lowerUnary<CosOp>, 1},
      {"stablehlo.sine", lowerUnary<SinOp>, 1},
      {"stablehlo.tan", lowerTan, 1},
      {"stablehlo.logistic", lowerLogistic, 1},
      {"stablehlo.is_finite", lowerIsFinite, 1},
      {"chlo.erf", lowerUnary<ErfOp>, 1},
      {"chlo.erfc", lowerErfc, 1},
      {"chlo.erf_inv", lowerErfInv, 1},
      {"chlo.square", lowerSquare, 1},
      {"stablehlo.add", lowerBinary<AddOp>, 2},
      {"stablehlo.subtract", lowerBinary<SubOp>, 2},
      {"stablehlo.multiply", lowerBinary<MulOp>, 2},
      {"stablehlo.divide", lowerBinary<DivOp>, 2},
      {"stablehlo.maximum", lowerBinary<MaxOp>, 2},
      {"stablehlo.minimum", lowerBinary<MinOp>, 2},
      {"stablehlo.remainder", lowerBinary<RemainderOp>, 2},
      {"stablehlo.power", lowerPower, 2},
      {"stablehlo.compare", lowerCompare, 2},
      {"stablehlo.select", lowerSelect, 3},
      {"stablehlo.clamp", lowerClamp, 3},
      {"stablehlo.convert", lowerConvert, 1},
      {"stablehlo.reduce_precision", lowerReducePrecision, 1},
  };
  return table;
}
