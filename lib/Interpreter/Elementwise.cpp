//===- Elementwise.cpp - Ops on one element at a time ---------------------===//

#include "Elementwise.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

static Type getElementType(Operation *op) {
  return getElementTypeOrSelf(op->getResult(0).getType());
}

static double identity(double x) { return x; }

UnaryFunction shardc::getUnary(Operation *op) {
  return llvm::TypeSwitch<Operation *, UnaryFunction>(op)
      .Case<NegOp>([](auto) { return [](double x) { return -x; }; })
      .Case<AbsOp>([](auto) { return [](double x) { return std::fabs(x); }; })
      .Case<SignOp>([](auto) {
        // NaN for NaN.
        return [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x * 0.0; };
      })
      .Case<ExpOp>([](auto) { return [](double x) { return std::exp(x); }; })
      .Case<Expm1Op>(
          [](auto) { return [](double x) { return std::expm1(x); }; })
      .Case<LogOp>([](auto) { return [](double x) { return std::log(x); }; })
      .Case<Log1pOp>(
          [](auto) { return [](double x) { return std::log1p(x); }; })
      .Case<SqrtOp>([](auto) { return [](double x) { return std::sqrt(x); }; })
      .Case<RsqrtOp>(
          [](auto) { return [](double x) { return 1 / std::sqrt(x); }; })
      .Case<TanhOp>([](auto) { return [](double x) { return std::tanh(x); }; })
      .Case<ErfOp>([](auto) { return [](double x) { return std::erf(x); }; })
      .Case<CosOp>([](auto) { return [](double x) { return std::cos(x); }; })
      .Case<SinOp>([](auto) { return [](double x) { return std::sin(x); }; })
      .Case<FloorOp>(
          [](auto) { return [](double x) { return std::floor(x); }; })
      .Case<StopGradientOp, ShardingConstraintOp, TransferOp>(
          [](auto) { return identity; })
      .Case<ConvertOp>([](ConvertOp op) -> UnaryFunction {
        Type to = getElementType(op);
        if (isa<FloatType>(to))
          return identity;
        if (to.isInteger(1))
          return [](double x) { return x != 0 ? 1.0 : 0.0; };
        return [](double x) { return std::trunc(x); };
      })
      .Default([](Operation *) { return nullptr; });
}

static BinaryFunction getComparison(CompareKind kind) {
  switch (kind) {
  case CompareKind::EQ:
    return [](double a, double b) { return double(a == b); };
  case CompareKind::NE:
    return [](double a, double b) { return double(a != b); };
  case CompareKind::LT:
    return [](double a, double b) { return double(a < b); };
  case CompareKind::LE:
    return [](double a, double b) { return double(a <= b); };
  case CompareKind::GT:
    return [](double a, double b) { return double(a > b); };
  case CompareKind::GE:
    return [](double a, double b) { return double(a >= b); };
  }
  return nullptr;
}

double shardc::maximum(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

BinaryFunction shardc::getBinary(Operation *op) {
  return llvm::TypeSwitch<Operation *, BinaryFunction>(op)
      .Case<AddOp>(
          [](auto) { return [](double a, double b) { return a + b; }; })
      .Case<SubOp>(
          [](auto) { return [](double a, double b) { return a - b; }; })
      .Case<MulOp>(
          [](auto) { return [](double a, double b) { return a * b; }; })
      .Case<DivOp>([](DivOp op) -> BinaryFunction {
        if (isa<FloatType>(getElementType(op)))
          return [](double a, double b) { return a / b; };
        // Division by zero as in the generated code, which does not trap.
        return
            [](double a, double b) { return b == 0 ? -1 : std::trunc(a / b); };
      })
      .Case<MaxOp>([](auto) { return maximum; })
      .Case<MinOp>([](auto) {
        return [](double a, double b) { return -maximum(-a, -b); };
      })
      .Case<RemainderOp>([](RemainderOp op) -> BinaryFunction {
        if (isa<FloatType>(getElementType(op)))
          return [](double a, double b) { return std::fmod(a, b); };
        // As its quotient, -1, says.
        return [](double a, double b) { return b == 0 ? a : std::fmod(a, b); };
      })
      .Case<PowerOp>([](auto) {
        return [](double a, double b) { return std::pow(a, b); };
      })
      .Case<CompareOp>([](CompareOp op) { return getComparison(op.getKind()); })
      .Default([](Operation *) { return nullptr; });
}
