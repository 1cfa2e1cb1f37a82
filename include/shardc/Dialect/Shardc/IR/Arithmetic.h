//===- Arithmetic.h - Builds elementwise ops of one type --------*- C++ -*-===//
//
// A shorthand for code that writes formulas. Not thread-safe, like the builder
// that it borrows.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_DIALECT_SHARDC_IR_ARITHMETIC_H
#define SHARDC_DIALECT_SHARDC_IR_ARITHMETIC_H

#include "shardc/Dialect/Shardc/IR/Builders.h"

namespace shardc {

/// Elementwise arithmetic at one location on values of one type.
class Arithmetic {
public:
  Arithmetic(mlir::OpBuilder &builder, mlir::Location loc,
             mlir::RankedTensorType type)
      : builder(builder), loc(loc), type(type) {}
  Arithmetic(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like)
      : Arithmetic(builder, loc,
                   mlir::cast<mlir::RankedTensorType>(like.getType())) {}

  mlir::RankedTensorType getType() const { return type; }

  mlir::Value constant(double value) {
    return constantSplat(builder, loc, type, value);
  }
  mlir::Value neg(mlir::Value x) { return build<NegOp>(x); }
  mlir::Value sign(mlir::Value x) { return build<SignOp>(x); }
  mlir::Value exp(mlir::Value x) { return build<ExpOp>(x); }
  mlir::Value expm1(mlir::Value x) { return build<Expm1Op>(x); }
  mlir::Value sqrt(mlir::Value x) { return build<SqrtOp>(x); }
  mlir::Value cos(mlir::Value x) { return build<CosOp>(x); }
  mlir::Value sin(mlir::Value x) { return build<SinOp>(x); }
  mlir::Value add(mlir::Value x, mlir::Value y) { return build<AddOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return build<SubOp>(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return build<MulOp>(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return build<DivOp>(x, y); }
  mlir::Value max(mlir::Value x, mlir::Value y) { return build<MaxOp>(x, y); }
  mlir::Value min(mlir::Value x, mlir::Value y) { return build<MinOp>(x, y); }
  mlir::Value power(mlir::Value x, mlir::Value y) {
    return build<PowerOp>(x, y);
  }
  mlir::Value less(mlir::Value x, mlir::Value y) {
    return compare(builder, loc, CompareKind::LT, x, y);
  }
  mlir::Value select(mlir::Value predicate, mlir::Value x, mlir::Value y) {
    return build<SelectOp>(type, predicate, x, y);
  }
  /// A rank-0 tensor of any element type, converted and repeated to the type.
  mlir::Value broadcast(mlir::Value scalar) {
    return broadcastScalar(
        builder, loc, convertTo(builder, loc, scalar, type.getElementType()),
        type);
  }

private:
  template <typename Op, typename... Args>
  mlir::Value build(Args... args) {
    return builder.create<Op>(loc, args...);
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::RankedTensorType type;
};

} // namespace shardc

#endif // SHARDC_DIALECT_SHARDC_IR_ARITHMETIC_H
