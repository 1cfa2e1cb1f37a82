//===- Transcendentals.cpp - exp, log, tanh, erf, sin, cos, pow on lanes --===//
//
// Argument reduction and polynomials. The f32 coefficients of exp and log are
// those of Cephes (Moshier); those of erf are Chebyshev fits of our own. The
// f64 functions use series long enough for the reduced interval.
//
//===----------------------------------------------------------------------===//

#include "shardc/Conversion/KernelEmitter/Transcendentals.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace shardc {

Type Transcendentals::getBitsLike(Value like) {
  Type integer = isDouble(like) ? builder.getI64Type() : builder.getI32Type();
  return VectorMath::getTypeLike(integer, like);
}

Value Transcendentals::horner(Value x, ArrayRef<double> coefficients) {
  Value result = math.constantLike(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    result = math.fma(result, x, math.constantLike(x, coefficient));
  return result;
}

Value Transcendentals::copySign(Value magnitude, Value sign) {
  return builder.create<math::CopySignOp>(loc, magnitude, sign);
}

Value Transcendentals::powerOfTwo(Value n, Value like) {
  bool isF64 = isDouble(like);
  Value biased = math.add(n, math.constantLike(n, isF64 ? 1023 : 127));
  Value bits = builder.create<arith::ShLIOp>(
      loc, biased, math.constantLike(n, isF64 ? 52 : 23));
  return builder.create<arith::BitcastOp>(loc, like.getType(), bits);
}

void Transcendentals::reduceByLn2(Value x, Value &n, Value &r) {
  // Adding 1.5·2^(mantissa bits) rounds to an integer, which then stands in the
  // low bits: no conversion that NaN would make undefined.
  bool isF64 = isDouble(x);
  Value magic = math.constantLike(x, isF64 ? 6755399441055744.0 : 12582912.0);
  Value shifted = math.fma(x, math.constantLike(x, 1.4426950408889634), magic);
  Type bits = getBitsLike(x);
  n = math.sub(builder.create<arith::BitcastOp>(loc, bits, shifted),
               builder.create<arith::BitcastOp>(loc, bits, magic));
  Value whole = math.sub(shifted, magic);
  double high = isF64 ? 6.93147180369123816490e-01 : 0.693359375;
  double low = isF64 ? 1.90821492927058770002e-10 : -2.12194440e-4;
  r = math.fma(whole, math.constantLike(x, -high), x);
  r = math.fma(whole, math.constantLike(x, -low), r);
}

Value Transcendentals::expm1Core(Value r) {
  Value square = math.mul(r, r);
  if (!isDouble(r)) {
    Value p = horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                         4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
    return math.fma(p, square, r);
  }
  double factorial = 1;
  SmallVector<double> series;
  for (int i = 2; i <= 14; ++i) {
    factorial *= i;
    series.insert(series.begin(), 1.0 / factorial);
  }
  return math.fma(horner(r, series), square, r);
}

Value Transcendentals::exp(Value x) {
  bool isF64 = isDouble(x);
  // Beyond these bounds the result is infinite or zero; selects keep NaN.
  Value high = math.constantLike(x, isF64 ? 710.0 : 89.0);
  Value low = math.constantLike(x, isF64 ? -746.0 : -104.0);
  x = math.select(math.compareFloat(arith::CmpFPredicate::OGT, x, high), high,
                  x);
  x = math.select(math.compareFloat(arith::CmpFPredicate::OLT, x, low), low, x);
  Value n, r;
  reduceByLn2(x, n, r);
  Value mantissa = math.add(expm1Core(r), math.constantLike(x, 1.0));
  // In two steps, so that the scale itself neither overflows nor underflows.
  Value half = builder.create<arith::ShRSIOp>(loc, n, math.constantLike(n, 1));
  Value rest = math.sub(n, half);
  return math.mul(math.mul(mantissa, powerOfTwo(half, x)), powerOfTwo(rest, x));
}

Value Transcendentals::expm1(Value x) {
  bool isF64 = isDouble(x);
  Value argument = x;
  Value high = math.constantLike(x, isF64 ? 709.9 : 88.9);
  Value low = math.constantLike(x, isF64 ? -40.0 : -20.0);
  x = math.select(math.compareFloat(arith::CmpFPredicate::OGT, x, high), high,
                  x);
  x = math.select(math.compareFloat(arith::CmpFPredicate::OLT, x, low), low, x);
  Value n, r;
  reduceByLn2(x, n, r);
  // 2^n·p + 2^n - 1, halved until the end because 2^128 is no float.
  Value half = powerOfTwo(math.sub(n, math.constantLike(n, 1)), x);
  Value sum =
      math.fma(half, expm1Core(r), math.sub(half, math.constantLike(x, 0.5)));
  Value result = math.add(sum, sum);
  // Tiny arguments, -0 included, are their own result.
  Value tiny = math.compareFloat(arith::CmpFPredicate::OLT, math.abs(argument),
                                 math.constantLike(x, isF64 ? 1e-17 : 1e-9));
  return math.select(tiny, argument, result);
}

Value Transcendentals::log(Value x) {
  bool isF64 = isDouble(x);
  Value argument = x;
  // Subnormal numbers are scaled into the normal range first.
  Value subnormal = math.compareFloat(
      arith::CmpFPredicate::OLT, x,
      math.constantLike(x, std::ldexp(1.0, isF64 ? -1022 : -126)));
  int scale = isF64 ? 52 : 23;
  x = math.select(subnormal,
                  math.mul(x, math.constantLike(x, std::ldexp(1.0, scale))), x);
  // x = m·2^e with m in [sqrt(1/2), sqrt(2)).
  Type bitsType = getBitsLike(x);
  Value bits = builder.create<arith::BitcastOp>(loc, bitsType, x);
  Type element = VectorMath::getElement(bits);
  Value base = math.constantInt(element, isF64 ? int64_t(0x3fe6a09e667f3bcd)
                                               : int64_t(0x3f3504f3));
  Value offset = math.sub(bits, base);
  Value shift = math.constantLike(offset, isF64 ? 52 : 23);
  Value e = builder.create<arith::ShRSIOp>(loc, offset, shift);
  Value whole = builder.create<arith::ShLIOp>(loc, e, shift);
  Value m =
      builder.create<arith::BitcastOp>(loc, x.getType(), math.sub(bits, whole));
  e = math.select(subnormal, math.sub(e, math.constantLike(e, scale)), e);
  Value exponent = math.convert(e, VectorMath::getElement(x));
  Value f = math.sub(m, math.constantLike(x, 1.0));
  Value result;
  if (isF64) {
    // 2·atanh(s), s = f/(2+f): |s| < 0.172.
    Value s = math.div(f, math.add(f, math.constantLike(x, 2.0)));
    SmallVector<double> series;
    for (int i = 21; i >= 1; i -= 2)
      series.push_back(2.0 / i);
    Value p = math.mul(s, horner(math.mul(s, s), series));
    result =
        math.fma(exponent, math.constantLike(x, 6.93147180369123816490e-01),
                 math.fma(exponent,
                          math.constantLike(x, 1.90821492927058770002e-10), p));
  } else {
    Value square = math.mul(f, f);
    Value p = horner(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
                         -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                         2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    p = math.mul(math.mul(p, square), f);
    p = math.fma(exponent, math.constantLike(x, -2.12194440e-4), p);
    p = math.fma(square, math.constantLike(x, -0.5), p);
    result =
        math.fma(exponent, math.constantLike(x, 0.693359375), math.add(f, p));
  }
  Value zero = math.constantLike(x, 0.0);
  Value infinity = math.constantLike(x, HUGE_VAL);
  result = math.select(
      math.compareFloat(arith::CmpFPredicate::OEQ, argument, infinity),
      infinity, result);
  result =
      math.select(math.compareFloat(arith::CmpFPredicate::OEQ, argument, zero),
                  math.constantLike(x, -HUGE_VAL), result);
  Value valid = math.compareFloat(arith::CmpFPredicate::OGE, argument, zero);
  return math.select(valid, result, math.constantLike(x, std::nan("")));
}

Value Transcendentals::log1p(Value x) {
  // log(u)·x/(u-1) with u = 1+x undoes the rounding of u (Kahan).
  Value one = math.constantLike(x, 1.0);
  Value u = math.add(x, one);
  Value difference = math.sub(u, one);
  Value lost = math.compareFloat(arith::CmpFPredicate::OEQ, difference,
                                 math.constantLike(x, 0.0));
  Value isInfinite = math.compareFloat(arith::CmpFPredicate::OEQ, x,
                                       math.constantLike(x, HUGE_VAL));
  Value corrected =
      math.mul(log(u), math.div(x, math.select(lost, one, difference)));
  return math.select(lost, x, math.select(isInfinite, x, corrected));
}

Value Transcendentals::tanh(Value x) {
  bool isF64 = isDouble(x);
  Value magnitude = math.abs(x);
  Value bound = math.constantLike(x, isF64 ? 20.0 : 10.0);
  magnitude = math.select(
      math.compareFloat(arith::CmpFPredicate::OGT, magnitude, bound), bound,
      magnitude);
  Value e = expm1(math.add(magnitude, magnitude));
  Value result = math.div(e, math.add(e, math.constantLike(x, 2.0)));
  return copySign(result, x);
}

Value Transcendentals::erf(Value x) {
  if (isDouble(x)) {
    // A Taylor-like series (Abramowitz and Stegun 7.1.6) up to 6, where erf is
    // 1 to double precision: 2/sqrt(pi)·e^(-x²)·Σ 2^n x^(2n+1)/(2n+1)!!.
    Value a = math.abs(x);
    Value bound = math.constantLike(x, 6.0);
    a = math.select(math.compareFloat(arith::CmpFPredicate::OGT, a, bound),
                    bound, a);
    Value square = math.mul(a, a);
    // Highest term first: 1 + 2x²/3·(1 + 2x²/5·(…)).
    Value sum = math.constantLike(x, 1.0);
    for (int n = 120; n >= 1; --n)
      sum = math.fma(math.mul(square, math.constantLike(x, 2.0 / (2 * n + 1))),
                     sum, math.constantLike(x, 1.0));
    Value result =
        math.mul(math.mul(a, math.constantLike(x, 1.1283791670955126)),
                 math.mul(exp(math.neg(square)), sum));
    result = math.select(math.compareFloat(arith::CmpFPredicate::OGE, a, bound),
                         math.constantLike(x, 1.0), result);
    return copySign(result, x);
  }
  Value a = math.abs(x);
  Value bound = math.constantLike(x, 4.0);
  a = math.select(math.compareFloat(arith::CmpFPredicate::OGT, a, bound), bound,
                  a);
  // Below 1: x times a polynomial in x².
  Value small =
      math.mul(a, horner(math.mul(a, a),
                         {7.87587506269e-5, -0.000801686428717,
                          0.00518908742343, -0.0268542120106, 0.112835947152,
                          -0.376126266667, 1.12837916585}));
  // Above: 1 - e^-g(x).
  Value g = horner(a, {-1.6226791711e-6, 4.57862470017e-5, -0.000594631795119,
                       0.00474993511778, -0.0263950545094, 0.110036284589,
                       0.63187076429, 1.13020802974, -0.00031397709336});
  Value large = math.sub(math.constantLike(x, 1.0), exp(math.neg(g)));
  Value isSmall = math.compareFloat(arith::CmpFPredicate::OLT, a,
                                    math.constantLike(x, 1.0));
  return copySign(math.select(isSmall, small, large), x);
}

Value Transcendentals::sinCos(Value x, int64_t quadrant) {
  // In f64 throughout: the reduction by pi/2 is then exact enough for any f32
  // argument that training meets.
  Type element = VectorMath::getElement(x);
  Value wide = math.convert(x, builder.getF64Type());
  Value magic = math.constantLike(wide, 6755399441055744.0);
  Value shifted =
      math.fma(wide, math.constantLike(wide, 0.63661977236758134308), magic);
  Type bitsType = VectorMath::getTypeLike(builder.getI64Type(), wide);
  Value n = builder.create<arith::BitcastOp>(loc, bitsType, shifted);
  n = math.add(n, math.constantLike(n, static_cast<double>(quadrant)));
  Value whole = math.sub(shifted, magic);
  Value r = math.fma(whole, math.constantLike(wide, -1.5707963267948966), wide);
  r = math.fma(whole, math.constantLike(wide, -6.123233995736766e-17), r);
  Value square = math.mul(r, r);
  auto series = [&](int first) {
    SmallVector<double> terms;
    double term = 1;
    for (int i = first, sign = 1; i <= first + 14; i += 2, sign = -sign) {
      terms.insert(terms.begin(), sign * term);
      term /= (i + 1.0) * (i + 2.0);
    }
    return horner(square, terms);
  };
  Value sine = math.mul(r, series(1));
  Value cosine = series(0);
  Value one = math.constantLike(n, 1), two = math.constantLike(n, 2);
  Value zero = math.constantLike(n, 0);
  Value odd = math.compareInt(arith::CmpIPredicate::ne,
                              builder.create<arith::AndIOp>(loc, n, one), zero);
  Value negative =
      math.compareInt(arith::CmpIPredicate::ne,
                      builder.create<arith::AndIOp>(loc, n, two), zero);
  Value result = math.select(odd, cosine, sine);
  result = math.select(negative, math.neg(result), result);
  return math.convert(result, element);
}

Value Transcendentals::power(Value x, Value y) {
  // In f64 throughout, so that the product with the logarithm keeps enough
  // digits; the cases are those of C's pow.
  math.unify(x, y);
  Type element = VectorMath::getElement(x);
  x = math.convert(x, builder.getF64Type());
  y = math.convert(y, builder.getF64Type());
  using P = arith::CmpFPredicate;
  auto both = [&](Value lhs, Value rhs) -> Value {
    return builder.create<arith::AndIOp>(loc, lhs, rhs);
  };
  Value zero = math.constantLike(x, 0.0), one = math.constantLike(x, 1.0);
  Value magnitude = math.abs(x);
  Value result = exp(math.mul(y, log(magnitude)));
  result = math.select(math.compareFloat(P::OEQ, magnitude, one), one, result);
  Value half = math.mul(y, math.constantLike(y, 0.5));
  Value isInteger = math.compareFloat(P::OEQ, y, math.floor(y));
  Value isOdd =
      both(isInteger, math.compareFloat(P::ONE, half, math.floor(half)));
  Value isNegative = math.compareFloat(P::OLT, copySign(one, x), zero);
  result = math.select(both(isNegative, isOdd), math.neg(result), result);
  Value isFinite =
      math.compareFloat(P::OGT, x, math.constantLike(x, -HUGE_VAL));
  Value hasNone = both(both(math.compareFloat(P::OLT, x, zero), isFinite),
                       math.compareFloat(P::UNE, y, math.floor(y)));
  result = math.select(hasNone, math.constantLike(x, std::nan("")), result);
  result = math.select(math.compareFloat(P::OEQ, y, zero), one, result);
  return math.convert(result, element);
}

Value Transcendentals::remainder(Value x, Value y) {
  math.unify(x, y);
  Type element = VectorMath::getElement(x);
  if (!isa<FloatType>(element))
    return math.sub(x, math.mul(math.div(x, y), y));
  // Long division in f64: each step takes 50 bits of the quotient, so that it
  // is exact but for one, and so is the remainder. The greatest quotient of two
  // floats is 2^277, that of doubles 2^2098.
  int shift = isDouble(x) ? 2046 : 250;
  Value dividend = math.convert(x, builder.getF64Type());
  Value divisor = math.abs(math.convert(y, builder.getF64Type()));
  using P = arith::CmpFPredicate;
  Value rest = math.abs(dividend);
  for (bool isLast = false; !isLast; shift = std::max(shift - 50, 0)) {
    isLast = shift == 0;
    auto scale = [&](Value value, int bits) {
      return math.mul(value, math.constantLike(value, std::ldexp(1.0, bits)));
    };
    Value part = scale(scale(divisor, shift / 2), shift - shift / 2);
    Value quotient = math.floor(math.div(rest, part));
    Value next = math.fma(math.neg(quotient), part, rest);
    next = math.select(
        math.compareFloat(P::OLT, next, math.constantLike(next, 0.0)),
        math.add(next, part), next);
    next = math.select(math.compareFloat(P::OGE, next, part),
                       math.sub(next, part), next);
    // Nothing to do, also where the part is infinite.
    rest = math.select(math.compareFloat(P::OLT, rest, part), rest, next);
  }
  return math.convert(copySign(rest, dividend), element);
}

} // namespace shardc
