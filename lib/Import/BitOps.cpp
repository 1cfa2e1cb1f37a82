//===- BitOps.cpp - Ops of StableHLO on bits ------------------------------===//

#include "Lowering.h"

using namespace mlir;
using namespace shardc;

static bool isBool(Value value) {
  return getTensorType(value).getElementType().isSignlessInteger(1);
}

template <typename Op>
static LogicalResult lowerBits(Lowering &lowering, Operation *op) {
  return lowering.set(
      op, lowering.getBuilder().create<Op>(op->getLoc(), lowering.get(op, 0),
                                           lowering.get(op, 1)));
}

/// `BoolOp` of bool, `BitsOp` of integers.
template <typename BoolOp, typename BitsOp>
static LogicalResult lowerLogical(Lowering &lowering, Operation *op) {
  return isBool(lowering.get(op, 0)) ? lowerBits<BoolOp>(lowering, op)
                                     : lowerBits<BitsOp>(lowering, op);
}

static LogicalResult lowerXor(Lowering &lowering, Operation *op) {
  Value lhs = lowering.get(op, 0), rhs = lowering.get(op, 1);
  if (!isBool(lhs))
    return lowerBits<XorOp>(lowering, op);
  return lowering.set(op, compare(lowering.getBuilder(), op->getLoc(),
                                  CompareKind::NE, lhs, rhs));
}

static LogicalResult lowerNot(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  Arithmetic a = lowering.at(op);
  OpBuilder &builder = lowering.getBuilder();
  if (isBool(x))
    return lowering.set(
        op, compare(builder, op->getLoc(), CompareKind::EQ, x, a.constant(0)));
  return lowering.set(op,
                      builder.create<XorOp>(op->getLoc(), x, a.constant(-1)));
}

static LogicalResult lowerBitcast(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  RankedTensorType from = getTensorType(x), to = lowering.at(op).getType();
  if (from == to)
    return lowering.set(op, x);
  Type before = from.getElementType(), after = to.getElementType();
  if (from.getShape() != to.getShape() ||
      isa<FloatType>(before) == isa<FloatType>(after) ||
      before.getIntOrFloatBitWidth() != after.getIntOrFloatBitWidth())
    return emitError(op->getLoc())
           << "the bits of " << from << " as " << to
           << " are not supported: expected floats and integers of 32 or of 64 "
              "bits";
  return lowering.set(
      op, lowering.getBuilder().create<BitcastOp>(op->getLoc(), to, x));
}

/// The float next to x in the direction of y: floats of one sign have the order
/// of their bits.
static LogicalResult lowerNextAfter(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0), y = lowering.get(op, 1);
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  RankedTensorType type = getTensorType(x);
  unsigned width = type.getElementType().getIntOrFloatBitWidth();
  if (width < 32)
    return emitError(loc) << "nextafter of " << type.getElementType()
                          << " is not supported: use float32";
  RankedTensorType bitsType = type.clone(builder.getIntegerType(width));
  auto test = [&](CompareKind kind, Value lhs, Value rhs) {
    return compare(builder, loc, kind, lhs, rhs);
  };
  auto toBits = [&](Value value) -> Value {
    return builder.create<BitcastOp>(loc, bitsType, value);
  };
  Arithmetic a(builder, loc, type), bits(builder, loc, bitsType);
  Value zero = a.constant(0), one = bits.constant(1);
  Value isUp = test(CompareKind::LT, x, y);
  Value grows = test(CompareKind::EQ, isUp, test(CompareKind::LT, zero, x));
  Value next = bits.add(toBits(x), bits.select(grows, one, bits.constant(-1)));
  // From zero on to the smallest number with the sign of y.
  Value sign = builder.create<ConstantOp>(
      loc, DenseElementsAttr::get(bitsType, APInt::getSignMask(width)));
  Value smallest = builder.create<OrOp>(
      loc, builder.create<AndOp>(loc, toBits(y), sign), one);
  next = bits.select(test(CompareKind::EQ, x, zero), smallest, next);
  Value result = builder.create<BitcastOp>(loc, type, next);
  // NaN comes out of the sum.
  Arithmetic truth(builder, loc, isUp);
  Value isNaN =
      truth.max(test(CompareKind::NE, x, x), test(CompareKind::NE, y, y));
  result = a.select(isNaN, a.add(x, y), result);
  return lowering.set(op, a.select(test(CompareKind::EQ, x, y), y, result));
}

ArrayRef<OpLowering> shardc::getBitLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.and", lowerLogical<MinOp, AndOp>, 2},
      {"stablehlo.or", lowerLogical<MaxOp, OrOp>, 2},
      {"stablehlo.xor", lowerXor, 2},
      {"stablehlo.not", lowerNot, 1},
      {"stablehlo.shift_left", lowerBits<ShiftLeftOp>, 2},
      {"stablehlo.shift_right_logical", lowerBits<ShiftRightLogicalOp>, 2},
      {"stablehlo.shift_right_arithmetic", lowerBits<ShiftRightArithmeticOp>,
       2},
      {"stablehlo.bitcast_convert", lowerBitcast, 1},
      {"chlo.next_after", lowerNextAfter, 2},
  };
  return table;
}
