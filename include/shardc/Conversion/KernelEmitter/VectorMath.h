//===- VectorMath.h - Arithmetic on scalars and lanes -----------*- C++ -*-===//
//
// Builds arith and vector ops for values that are scalars or vectors of
// `numLanes` lanes. No library function is called, and no result depends on the
// lane. Not thread-safe, as the builder it borrows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_CONVERSION_KERNELEMITTER_VECTORMATH_H
#define SHARDC_CONVERSION_KERNELEMITTER_VECTORMATH_H

#include "shardc/Dialect/Shardc/IR/Enums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace shardc {

/// Arithmetic over one builder, at whose insertion point everything is built.
class VectorMath {
public:
  VectorMath(mlir::OpBuilder &builder, mlir::Location loc, int64_t numLanes)
      : numLanes(numLanes), builder(builder), loc(loc) {}

  /// Lanes of a vector value, whatever its element type.
  int64_t numLanes;

  /// The element type of a scalar or vector value.
  static mlir::Type getElement(mlir::Value value);
  /// Whether the value has lanes.
  static bool isVector(mlir::Value value);
  /// `element` with the lanes of `like`, if it has any.
  static mlir::Type getTypeLike(mlir::Type element, mlir::Value like);

  /// A scalar constant of float or integer type; integers are truncated.
  mlir::Value constant(mlir::Type element, double value);
  mlir::Value constantInt(mlir::Type element, int64_t value);
  /// A constant of the type of `like`, splat over its lanes.
  mlir::Value constantLike(mlir::Value like, double value);
  /// The scalar in every lane; vectors are returned as they are.
  mlir::Value splat(mlir::Value value);
  /// Splats a scalar among the two if the other has lanes.
  void unify(mlir::Value &lhs, mlir::Value &rhs);

  mlir::Value add(mlir::Value lhs, mlir::Value rhs);
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs);
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs);
  /// Integer quotients are truncated; x/0 is -1 and never traps.
  mlir::Value div(mlir::Value lhs, mlir::Value rhs);
  /// lhs·rhs + acc; rounded once for floats.
  mlir::Value fma(mlir::Value lhs, mlir::Value rhs, mlir::Value acc);
  /// The larger (smaller); NaN if either is.
  mlir::Value max(mlir::Value lhs, mlir::Value rhs);
  mlir::Value min(mlir::Value lhs, mlir::Value rhs);
  mlir::Value select(mlir::Value predicate, mlir::Value onTrue,
                     mlir::Value onFalse);
  mlir::Value compareFloat(mlir::arith::CmpFPredicate predicate,
                           mlir::Value lhs, mlir::Value rhs);
  mlir::Value compareInt(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                         mlir::Value rhs);
  /// The value as `element`, with the rules of `shardc.convert`; floats beyond
  /// the range of an integer saturate and NaN becomes 0.
  mlir::Value convert(mlir::Value value, mlir::Type element);

  mlir::Value bitAnd(mlir::Value lhs, mlir::Value rhs);
  mlir::Value bitOr(mlir::Value lhs, mlir::Value rhs);
  mlir::Value bitXor(mlir::Value lhs, mlir::Value rhs);
  /// Shifts by an unsigned `amount`; what leaves is lost.
  mlir::Value shiftLeft(mlir::Value x, mlir::Value amount);
  mlir::Value shiftRightLogical(mlir::Value x, mlir::Value amount);
  mlir::Value shiftRightArithmetic(mlir::Value x, mlir::Value amount);
  /// The bits of `x` as `element`, which has as many.
  mlir::Value bitcast(mlir::Value x, mlir::Type element);

  mlir::Value neg(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value sign(mlir::Value x);
  /// The greatest integer that is not above.
  mlir::Value floor(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value rsqrt(mlir::Value x);
  /// An f32 rounded to the nearest bf16, ties to even, as an f32. NaN stays
  /// quiet.
  mlir::Value roundToBF16(mlir::Value value);

  /// The neutral element of a reduction.
  mlir::Value getIdentity(ReductionKind kind, mlir::Type element);
  mlir::Value combine(ReductionKind kind, mlir::Value lhs, mlir::Value rhs);
  /// All lanes of a vector combined, halves first; a scalar as it is.
  mlir::Value combineLanes(ReductionKind kind, mlir::Value value);
  mlir::Value getFirstLane(mlir::Value value);
  /// Lanes from `lanes` on replaced by `fill`; all stay if `lanes` is 0.
  mlir::Value maskLanes(mlir::Value value, int64_t lanes, mlir::Value fill);
  /// Vector constant true in the first `lanes` lanes.
  mlir::Value getLaneMask(int64_t lanes);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace shardc

#endif // SHARDC_CONVERSION_KERNELEMITTER_VECTORMATH_H
