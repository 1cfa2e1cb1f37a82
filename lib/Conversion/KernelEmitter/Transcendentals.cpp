//===- Transcendentals.cpp - exp, log, tanh, erf, sin, cos on lanes -------===//
//
// Argument reduction and polynomials. The f32 coefficients of exp and log are
// those of Cephes (Moshier); those of erf are Chebyshev fits of our own. The
// f64 functions use series long enough for the reduced interval.
//
//===----------------------------------------------------------------------===//

#include "shardc/Conversion/KernelEmitter/VectorMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace shardc {

Type VectorMath::getBitsLike(Value like) {
  Type integer = isDouble(like) ? builder.getI64Type() : builder.getI32Type();
  return getTypeLike(integer, like);
}

Value VectorMath::horner(Value x, ArrayRef<double> coefficients) {
  Value result = constantLike(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    result = fma(result, x, constantLike(x, coefficient));
  return result;
}

Value VectorMath::copySign(Value magnitude, Value sign) {
  return builder.create<math::CopySignOp>(loc, magnitude, sign);
}

Value VectorMath::powerOfTwo(Value n, Value like) {
  bool isF64 = isDouble(like);
  Value biased = add(n, constantLike(n, isF64 ? 1023 : 127));
  Value bits = builder.create<arith::ShLIOp>(loc, biased,
                                             constantLike(n, isF64 ? 52 : 23));
  return builder.create<arith::BitcastOp>(loc, like.getType(), bits);
}

void VectorMath::reduceByLn2(Value x, Value &n, Value &r) {
  // Adding 1.5·2^(mantissa bits) rounds to an integer, which then stands in the
  // low bits: no conversion that NaN would make undefined.
  bool isF64 = isDouble(x);
  Value magic = constantLike(x, isF64 ? 6755399441055744.0 : 12582912.0);
  Value shifted = fma(x, constantLike(x, 1.4426950408889634), magic);
  Type bits = getBitsLike(x);
  n = sub(builder.create<arith::BitcastOp>(loc, bits, shifted),
          builder.create<arith::BitcastOp>(loc, bits, magic));
  Value whole = sub(shifted, magic);
  double high = isF64 ? 6.93147180369123816490e-01 : 0.693359375;
  double low = isF64 ? 1.90821492927058770002e-10 : -2.12194440e-4;
  r = fma(whole, constantLike(x, -high), x);
  r = fma(whole, constantLike(x, -low), r);
}

Value VectorMath::expm1Core(Value r) {
  Value square = mul(r, r);
  if (!isDouble(r)) {
    Value p = horner(r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                         4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
    return fma(p, square, r);
  }
  double factorial = 1;
  SmallVector<double> series;
  for (int i = 2; i <= 14; ++i) {
    factorial *= i;
    series.insert(series.begin(), 1.0 / factorial);
  }
  return fma(horner(r, series), square, r);
}

Value VectorMath::exp(Value x) {
  bool isF64 = isDouble(x);
  // Beyond these bounds the result is infinite or zero; selects keep NaN.
  Value high = constantLike(x, isF64 ? 710.0 : 89.0);
  Value low = constantLike(x, isF64 ? -746.0 : -104.0);
  x = select(compareFloat(arith::CmpFPredicate::OGT, x, high), high, x);
  x = select(compareFloat(arith::CmpFPredicate::OLT, x, low), low, x);
  Value n, r;
  reduceByLn2(x, n, r);
  Value mantissa = add(expm1Core(r), constantLike(x, 1.0));
  // In two steps, so that the scale itself neither overflows nor underflows.
  Value half = builder.create<arith::ShRSIOp>(loc, n, constantLike(n, 1));
  Value rest = sub(n, half);
  return mul(mul(mantissa, powerOfTwo(half, x)), powerOfTwo(rest, x));
}

Value VectorMath::expm1(Value x) {
  bool isF64 = isDouble(x);
  Value argument = x;
  Value high = constantLike(x, isF64 ? 709.9 : 88.9);
  Value low = constantLike(x, isF64 ? -40.0 : -20.0);
  x = select(compareFloat(arith::CmpFPredicate::OGT, x, high), high, x);
  x = select(compareFloat(arith::CmpFPredicate::OLT, x, low), low, x);
  Value n, r;
  reduceByLn2(x, n, r);
  // 2^n·p + 2^n - 1, halved until the end because 2^128 is no float.
  Value half = powerOfTwo(sub(n, constantLike(n, 1)), x);
  Value sum = fma(half, expm1Core(r), sub(half, constantLike(x, 0.5)));
  Value result = add(sum, sum);
  // Tiny arguments, -0 included, are their own result.
  Value tiny = compareFloat(arith::CmpFPredicate::OLT, abs(argument),
                            constantLike(x, isF64 ? 1e-17 : 1e-9));
  return select(tiny, argument, result);
}

Value VectorMath::log(Value x) {
  bool isF64 = isDouble(x);
  Value argument = x;
  // Subnormal numbers are scaled into the normal range first.
  Value subnormal =
      compareFloat(arith::CmpFPredicate::OLT, x,
                   constantLike(x, std::ldexp(1.0, isF64 ? -1022 : -126)));
  int scale = isF64 ? 52 : 23;
  x = select(subnormal, mul(x, constantLike(x, std::ldexp(1.0, scale))), x);
  // x = m·2^e with m in [sqrt(1/2), sqrt(2)).
  Type bitsType = getBitsLike(x);
  Value bits = builder.create<arith::BitcastOp>(loc, bitsType, x);
  Type element = getElement(bits);
  Value base = constantInt(element, isF64 ? int64_t(0x3fe6a09e667f3bcd)
                                          : int64_t(0x3f3504f3));
  Value offset = sub(bits, base);
  Value shift = constantLike(offset, isF64 ? 52 : 23);
  Value e = builder.create<arith::ShRSIOp>(loc, offset, shift);
  Value whole = builder.create<arith::ShLIOp>(loc, e, shift);
  Value m =
      builder.create<arith::BitcastOp>(loc, x.getType(), sub(bits, whole));
  e = select(subnormal, sub(e, constantLike(e, scale)), e);
  Value exponent = convert(e, getElement(x));
  Value f = sub(m, constantLike(x, 1.0));
  Value result;
  if (isF64) {
    // 2·atanh(s), s = f/(2+f): |s| < 0.172.
    Value s = div(f, add(f, constantLike(x, 2.0)));
    SmallVector<double> series;
    for (int i = 21; i >= 1; i -= 2)
      series.push_back(2.0 / i);
    Value p = mul(s, horner(mul(s, s), series));
    result = fma(exponent, constantLike(x, 6.93147180369123816490e-01),
                 fma(exponent, constantLike(x, 1.90821492927058770002e-10), p));
  } else {
    Value square = mul(f, f);
    Value p = horner(f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1,
                         -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
                         2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    p = mul(mul(p, square), f);
    p = fma(exponent, constantLike(x, -2.12194440e-4), p);
    p = fma(square, constantLike(x, -0.5), p);
    result = fma(exponent, constantLike(x, 0.693359375), add(f, p));
  }
  Value zero = constantLike(x, 0.0);
  Value infinity = constantLike(x, HUGE_VAL);
  result = select(compareFloat(arith::CmpFPredicate::OEQ, argument, infinity),
                  infinity, result);
  result = select(compareFloat(arith::CmpFPredicate::OEQ, argument, zero),
                  constantLike(x, -HUGE_VAL), result);
  Value valid = compareFloat(arith::CmpFPredicate::OGE, argument, zero);
  return select(valid, result, constantLike(x, std::nan("")));
}

Value VectorMath::log1p(Value x) {
  // log(u)·x/(u-1) with u = 1+x undoes the rounding of u (Kahan).
  Value one = constantLike(x, 1.0);
  Value u = add(x, one);
  Value difference = sub(u, one);
  Value lost =
      compareFloat(arith::CmpFPredicate::OEQ, difference, constantLike(x, 0.0));
  Value isInfinite =
      compareFloat(arith::CmpFPredicate::OEQ, x, constantLike(x, HUGE_VAL));
  Value corrected = mul(log(u), div(x, select(lost, one, difference)));
  return select(lost, x, select(isInfinite, x, corrected));
}

Value VectorMath::tanh(Value x) {
  bool isF64 = isDouble(x);
  Value magnitude = abs(x);
  Value bound = constantLike(x, isF64 ? 20.0 : 10.0);
  magnitude = select(compareFloat(arith::CmpFPredicate::OGT, magnitude, bound),
                     bound, magnitude);
  Value e = expm1(add(magnitude, magnitude));
  Value result = div(e, add(e, constantLike(x, 2.0)));
  return copySign(result, x);
}

Value VectorMath::erf(Value x) {
  if (isDouble(x)) {
    // A Taylor-like series (Abramowitz and Stegun 7.1.6) up to 6, where erf is
    // 1 to double precision: 2/sqrt(pi)·e^(-x²)·Σ 2^n x^(2n+1)/(2n+1)!!.
    Value a = abs(x);
    Value bound = constantLike(x, 6.0);
    a = select(compareFloat(arith::CmpFPredicate::OGT, a, bound), bound, a);
    Value square = mul(a, a);
    // Highest term first: 1 + 2x²/3·(1 + 2x²/5·(…)).
    Value sum = constantLike(x, 1.0);
    for (int n = 120; n >= 1; --n)
      sum = fma(mul(square, constantLike(x, 2.0 / (2 * n + 1))), sum,
                constantLike(x, 1.0));
    Value result = mul(mul(a, constantLike(x, 1.1283791670955126)),
                       mul(exp(neg(square)), sum));
    result = select(compareFloat(arith::CmpFPredicate::OGE, a, bound),
                    constantLike(x, 1.0), result);
    return copySign(result, x);
  }
  Value a = abs(x);
  Value bound = constantLike(x, 4.0);
  a = select(compareFloat(arith::CmpFPredicate::OGT, a, bound), bound, a);
  // Below 1: x times a polynomial in x².
  Value small = mul(
      a, horner(mul(a, a), {7.87587506269e-5, -0.000801686428717,
                            0.00518908742343, -0.0268542120106, 0.112835947152,
                            -0.376126266667, 1.12837916585}));
  // Above: 1 - e^-g(x).
  Value g = horner(a, {-1.6226791711e-6, 4.57862470017e-5, -0.000594631795119,
                       0.00474993511778, -0.0263950545094, 0.110036284589,
                       0.63187076429, 1.13020802974, -0.00031397709336});
  Value large = sub(constantLike(x, 1.0), exp(neg(g)));
  Value isSmall =
      compareFloat(arith::CmpFPredicate::OLT, a, constantLike(x, 1.0));
  return copySign(select(isSmall, small, large), x);
}

Value VectorMath::sinCos(Value x, int64_t quadrant) {
  // In f64 throughout: the reduction by pi/2 is then exact enough for any f32
  // argument that training meets.
  Type element = getElement(x);
  Value wide = convert(x, builder.getF64Type());
  Value magic = constantLike(wide, 6755399441055744.0);
  Value shifted = fma(wide, constantLike(wide, 0.63661977236758134308), magic);
  Type bitsType = getTypeLike(builder.getI64Type(), wide);
  Value n = builder.create<arith::BitcastOp>(loc, bitsType, shifted);
  n = add(n, constantLike(n, static_cast<double>(quadrant)));
  Value whole = sub(shifted, magic);
  Value r = fma(whole, constantLike(wide, -1.5707963267948966), wide);
  r = fma(whole, constantLike(wide, -6.123233995736766e-17), r);
  Value square = mul(r, r);
  auto series = [&](int first) {
    SmallVector<double> terms;
    double term = 1;
    for (int i = first, sign = 1; i <= first + 14; i += 2, sign = -sign) {
      terms.insert(terms.begin(), sign * term);
      term /= (i + 1.0) * (i + 2.0);
    }
    return horner(square, terms);
  };
  Value sine = mul(r, series(1));
  Value cosine = series(0);
  Value one = constantLike(n, 1), two = constantLike(n, 2);
  Value zero = constantLike(n, 0);
  Value odd = compareInt(arith::CmpIPredicate::ne,
                         builder.create<arith::AndIOp>(loc, n, one), zero);
  Value negative = compareInt(arith::CmpIPredicate::ne,
                              builder.create<arith::AndIOp>(loc, n, two), zero);
  Value result = select(odd, cosine, sine);
  result = select(negative, neg(result), result);
  return convert(result, element);
}

} // namespace shardc
