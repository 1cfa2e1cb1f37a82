//===- Elementwise.cpp - Ops on one element at a time ---------------------===//

#include "Elementwise.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace shardc;

static Type getElementType(Operation *op) {
  return getElementTypeOrSelf(op->getResult(0).getType());
}

static double identity(double x) { return x; }

namespace {
// Functions on bits, of which those of padding, NaN, stay unknown. A double
// has integers of up to 53 bits exactly.

template <typename Int>
Int toInteger(double x) {
  return static_cast<Int>(static_cast<int64_t>(x));
}

template <typename Int, typename Bits, Bits (*function)(Bits, Bits)>
double onBits(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return a + b;
  auto x = static_cast<Bits>(toInteger<Int>(a)),
       y = static_cast<Bits>(toInteger<Int>(b));
  return static_cast<double>(static_cast<Int>(function(x, y)));
}

/// The same function for the width of the element type of `op`.
template <uint32_t (*narrow)(uint32_t, uint32_t),
          uint64_t (*wide)(uint64_t, uint64_t)>
BinaryFunction getOnBits(Operation *op) {
  if (getElementType(op).isInteger(32))
    return onBits<int32_t, uint32_t, narrow>;
  return onBits<int64_t, uint64_t, wide>;
}

template <typename Bits>
Bits addBits(Bits a, Bits b) {
  return a + b;
}
template <typename Bits>
Bits subBits(Bits a, Bits b) {
  return a - b;
}
template <typename Bits>
Bits mulBits(Bits a, Bits b) {
  return a * b;
}
template <typename Bits>
Bits andBits(Bits a, Bits b) {
  return a & b;
}
template <typename Bits>
Bits orBits(Bits a, Bits b) {
  return a | b;
}
template <typename Bits>
Bits xorBits(Bits a, Bits b) {
  return a ^ b;
}
template <typename Bits>
Bits shiftLeft(Bits a, Bits b) {
  return b < 8 * sizeof(Bits) ? a << b : 0;
}
template <typename Bits>
Bits shiftRight(Bits a, Bits b) {
  return b < 8 * sizeof(Bits) ? a >> b : 0;
}
template <typename Bits>
Bits shiftSigned(Bits a, Bits b) {
  constexpr Bits most = 8 * sizeof(Bits) - 1;
  bool isNegative = a >> most;
  Bits shifted = (isNegative ? ~a : a) >> std::min(b, most);
  return isNegative ? ~shifted : shifted;
}

template <typename To, typename From>
double reinterpret(double x) {
  if (std::isnan(x))
    return x;
  From from;
  if constexpr (std::is_floating_point_v<From>)
    from = static_cast<From>(x);
  else
    from = toInteger<From>(x);
  return static_cast<double>(llvm::bit_cast<To>(from));
}
} // namespace

/// Integers of 32 bits wrap around; wider ones are taken as they are.
template <uint32_t (*wrapping)(uint32_t, uint32_t)>
static BinaryFunction wrap(Operation *op, BinaryFunction function) {
  return getElementType(op).isInteger(32) ? onBits<int32_t, uint32_t, wrapping>
                                          : function;
}

static UnaryFunction getBitcast(BitcastOp op) {
  bool isWide = getElementType(op).getIntOrFloatBitWidth() == 64;
  if (isa<FloatType>(getElementType(op)))
    return isWide ? reinterpret<double, int64_t> : reinterpret<float, int32_t>;
  return isWide ? reinterpret<int64_t, double> : reinterpret<int32_t, float>;
}

static double wrapToI32(double x) {
  return std::isnan(x) ? x : toInteger<int32_t>(x);
}

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
        if (to.isInteger(32) &&
            isa<IntegerType>(getElementTypeOrSelf(op.getOperand().getType())))
          return wrapToI32;
        return [](double x) { return std::trunc(x); };
      })
      .Case<BitcastOp>([](BitcastOp op) { return getBitcast(op); })
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
      .Case<AddOp>([](AddOp op) {
        return wrap<addBits>(op, [](double a, double b) { return a + b; });
      })
      .Case<SubOp>([](SubOp op) {
        return wrap<subBits>(op, [](double a, double b) { return a - b; });
      })
      .Case<MulOp>([](MulOp op) {
        return wrap<mulBits>(op, [](double a, double b) { return a * b; });
      })
      .Case<AndOp>([](AndOp op) { return getOnBits<andBits, andBits>(op); })
      .Case<OrOp>([](OrOp op) { return getOnBits<orBits, orBits>(op); })
      .Case<XorOp>([](XorOp op) { return getOnBits<xorBits, xorBits>(op); })
      .Case<ShiftLeftOp>(
          [](ShiftLeftOp op) { return getOnBits<shiftLeft, shiftLeft>(op); })
      .Case<ShiftRightLogicalOp>([](ShiftRightLogicalOp op) {
        return getOnBits<shiftRight, shiftRight>(op);
      })
      .Case<ShiftRightArithmeticOp>([](ShiftRightArithmeticOp op) {
        return getOnBits<shiftSigned, shiftSigned>(op);
      })
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
