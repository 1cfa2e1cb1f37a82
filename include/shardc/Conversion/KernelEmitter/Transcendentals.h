//===- Transcendentals.h - exp, log, tanh, erf, sin, cos, pow ---*- C++ -*-===//
//
// The transcendental functions as polynomials over VectorMath. No library
// function is called, and no result depends on the lane. Errors of the f32
// functions are a few units in the last place; NaN and infinities behave as in
// libm. Not thread-safe, as the builder it borrows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_TRANSCENDENTALS_H
#define SHARDC_CONVERSION_KERNELEMITTER_TRANSCENDENTALS_H

#include "shardc/Conversion/KernelEmitter/VectorMath.h"

namespace shardc {

/// Transcendental functions of f32 and f64, scalars or vectors, built with the
/// arithmetic of `math`.
class Transcendentals {
public:
  Transcendentals(mlir::OpBuilder &builder, mlir::Location loc,
                  VectorMath &math)
      : builder(builder), loc(loc), math(math) {}

  mlir::Value exp(mlir::Value x);
  mlir::Value expm1(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value log1p(mlir::Value x);
  mlir::Value tanh(mlir::Value x);
  mlir::Value erf(mlir::Value x);
  mlir::Value sin(mlir::Value x) { return sinCos(x, 0); }
  mlir::Value cos(mlir::Value x) { return sinCos(x, 1); }
  /// x^y in f64, rounded to the type; the error of an f64 grows with |y·log x|.
  mlir::Value power(mlir::Value x, mlir::Value y);
  /// The exact remainder of x/y with the sign of x, of floats or integers; of
  /// integers x for y = 0.
  mlir::Value remainder(mlir::Value x, mlir::Value y);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  VectorMath &math;

  static bool isDouble(mlir::Value value) {
    return VectorMath::getElement(value).isF64();
  }
  /// The integer type as wide as the float elements of `like`.
  mlir::Type getBitsLike(mlir::Value like);
  /// c[0]·x^(n-1) + … + c[n-1].
  mlir::Value horner(mlir::Value x, llvm::ArrayRef<double> coefficients);
  /// 2^n for an integer n within the normal exponents.
  mlir::Value powerOfTwo(mlir::Value n, mlir::Value like);
  /// x = n·ln2 + r, |r| <= ln2/2; n also as an integer of the width of x.
  void reduceByLn2(mlir::Value x, mlir::Value &n, mlir::Value &r);
  /// e^r - 1 for |r| <= ln2/2.
  mlir::Value expm1Core(mlir::Value r);
  /// sin(x + quadrant·pi/2).
  mlir::Value sinCos(mlir::Value x, int64_t quadrant);
  mlir::Value copySign(mlir::Value magnitude, mlir::Value sign);
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_TRANSCENDENTALS_H
