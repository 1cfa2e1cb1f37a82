//===- UnsignedOps.cpp - Ops of StableHLO on unsigned integers ------------===//
//
// The tensor core takes integers as signed. Those of 32 bits are computed
// unsigned in 64, or compared after their highest bit has been inverted.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

using namespace mlir;
using namespace shardc;

static Type elementOf(Value value) {
  return getTensorType(value).getElementType();
}

Value shardc::toSigned(Lowering &lowering, Location loc, Value x) {
  unsigned bits = elementOf(x).getIntOrFloatBitWidth();
  auto highest =
      DenseElementsAttr::get(getTensorType(x), APInt::getSignMask(bits));
  OpBuilder &builder = lowering.getBuilder();
  return builder.create<XorOp>(loc, x,
                               builder.create<ConstantOp>(loc, highest));
}

static Value compareUnsigned(Lowering &lowering, Location loc, CompareKind kind,
                             Value lhs, Value rhs) {
  return compare(lowering.getBuilder(), loc, kind, toSigned(lowering, loc, lhs),
                 toSigned(lowering, loc, rhs));
}

static LogicalResult lowerUnsignedCompare(Lowering &lowering, Operation *op) {
  FailureOr<CompareKind> kind = getDirection(op);
  if (failed(kind))
    return failure();
  return lowering.set(op, compareUnsigned(lowering, op->getLoc(), *kind,
                                          lowering.get(op, 0),
                                          lowering.get(op, 1)));
}

/// The larger of the two, or the smaller one.
static Value choose(Lowering &lowering, Location loc, CompareKind kind,
                    Value lhs, Value rhs) {
  Arithmetic a(lowering.getBuilder(), loc, lhs);
  return a.select(compareUnsigned(lowering, loc, kind, lhs, rhs), lhs, rhs);
}

template <CompareKind kind>
static LogicalResult lowerChoice(Lowering &lowering, Operation *op) {
  return lowering.set(op, choose(lowering, op->getLoc(), kind,
                                 lowering.get(op, 0), lowering.get(op, 1)));
}

static LogicalResult lowerUnsignedClamp(Lowering &lowering, Operation *op) {
  RankedTensorType type = lowering.at(op).getType();
  auto like = [&](unsigned index) {
    Value bound = lowering.get(op, index);
    return bound.getType() == type
               ? bound
               : lowering.broadcast(op->getLoc(), bound, type, {});
  };
  Value atLeast = choose(lowering, op->getLoc(), CompareKind::GT,
                         lowering.get(op, 1), like(0));
  return lowering.set(
      op, choose(lowering, op->getLoc(), CompareKind::LT, atLeast, like(2)));
}

/// An unsigned integer of 32 bits in 64.
static Value widen(Lowering &lowering, Location loc, Value x) {
  OpBuilder &builder = lowering.getBuilder();
  Value wide = convertTo(builder, loc, x, builder.getI64Type());
  Value low = constantSplat(builder, loc, getTensorType(wide), 0xffffffff);
  return builder.create<AndOp>(loc, wide, low);
}

static LogicalResult failWide(Operation *op) {
  return emitError(op->getLoc())
         << op->getName()
         << " of uint64 is not supported: convert to uint32 or int64";
}

template <typename Op>
static LogicalResult lowerInWide(Lowering &lowering, Operation *op) {
  Value lhs = lowering.get(op, 0), rhs = lowering.get(op, 1);
  Type element = elementOf(lhs);
  if (!element.isInteger(32))
    return failWide(op);
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  Value result = builder.create<Op>(loc, widen(lowering, loc, lhs),
                                    widen(lowering, loc, rhs));
  return lowering.set(op, convertTo(builder, loc, result, element));
}

/// A uint32 as a float: both halves are exact, so their sum is rounded once.
static Value toFloat(Lowering &lowering, Location loc, Value x, Type element) {
  OpBuilder &builder = lowering.getBuilder();
  Arithmetic bits(builder, loc, x);
  Value high = builder.create<ShiftRightLogicalOp>(loc, x, bits.constant(16));
  Value low = builder.create<AndOp>(loc, x, bits.constant(0xffff));
  Type exact = element.isF64() ? element : Type(builder.getF32Type());
  high = convertTo(builder, loc, high, exact);
  Arithmetic a(builder, loc, high);
  Value sum = a.add(a.mul(high, a.constant(65536)),
                    convertTo(builder, loc, low, exact));
  return convertTo(builder, loc, sum, element);
}

static LogicalResult lowerUnsignedConvert(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  Type from = elementOf(x), to = lowering.at(op).getType().getElementType();
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  if (to.isInteger(1)) {
    Arithmetic a(builder, loc, x);
    return lowering.set(
        op, compare(builder, loc, CompareKind::NE, x, a.constant(0)));
  }
  if (isa<FloatType>(from)) {
    Value wide = convertTo(builder, loc, x, builder.getI64Type());
    return lowering.set(op, convertTo(builder, loc, wide, to));
  }
  if (isa<FloatType>(to)) {
    if (!from.isInteger(32))
      return failWide(op);
    return lowering.set(op, toFloat(lowering, loc, x, to));
  }
  if (from.isInteger(32) && to.isInteger(64))
    return lowering.set(op, widen(lowering, loc, x));
  return lowering.set(op, convertTo(builder, loc, x, to));
}

static LogicalResult refuse(Lowering &, Operation *op) {
  return emitError(op->getLoc())
         << op->getName()
         << " of unsigned integers is not supported: convert to int32";
}

/// Sums do not depend on the sign; extrema do.
static LogicalResult lowerUnsignedReduce(Lowering &lowering, Operation *op) {
  StringRef body = op->getRegion(0).front().front().getName().getStringRef();
  if (body == "stablehlo.maximum" || body == "stablehlo.minimum")
    return refuse(lowering, op);
  for (const OpLowering &each : getReduceLowerings())
    if (each.name == "stablehlo.reduce")
      return each.lower(lowering, op);
  return refuse(lowering, op);
}

ArrayRef<OpLowering> shardc::getUnsignedLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.compare", lowerUnsignedCompare, 2},
      {"stablehlo.maximum", lowerChoice<CompareKind::GT>, 2},
      {"stablehlo.minimum", lowerChoice<CompareKind::LT>, 2},
      {"stablehlo.clamp", lowerUnsignedClamp, 3},
      {"stablehlo.divide", lowerInWide<DivOp>, 2},
      {"stablehlo.remainder", lowerInWide<RemainderOp>, 2},
      {"stablehlo.convert", lowerUnsignedConvert, 1},
      {"stablehlo.reduce", lowerUnsignedReduce, -1, 1},
      {"stablehlo.abs", refuse, 1},
      {"stablehlo.sign", refuse, 1},
      {"stablehlo.power", refuse, 2},
  };
  return table;
}
