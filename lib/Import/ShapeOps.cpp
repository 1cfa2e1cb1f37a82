//===- ShapeOps.cpp - Ops of StableHLO on dimensions ----------------------===//

#include "Lowering.h"
#include "OpaqueText.h"

#include <limits>

using namespace mlir;
using namespace shardc;

static ArrayRef<int64_t> getDims(Operation *op, StringRef name) {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>(name);
  return dims ? dims.asArrayRef() : ArrayRef<int64_t>();
}

static LogicalResult lowerConstant(Lowering &lowering, Operation *op) {
  auto value = op->getAttrOfType<DenseElementsAttr>("value");
  if (!value)
    return emitError(op->getLoc()) << "a constant has no dense value";
  return lowering.set(
      op, lowering.getBuilder().create<ConstantOp>(op->getLoc(), value));
}

static LogicalResult lowerBroadcast(Lowering &lowering, Operation *op) {
  ArrayRef<int64_t> dims = getDims(op, "broadcast_dimensions");
  Value x = lowering.get(op, 0);
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  bool isRight = static_cast<int64_t>(dims.size()) == from.getRank();
  for (size_t i = 0; isRight && i < dims.size(); ++i)
    isRight = dims[i] >= 0 && dims[i] < type.getRank() &&
              (from.getDimSize(i) == 1 ||
               from.getDimSize(i) == type.getDimSize(dims[i]));
  if (!isRight || from.getElementType() != type.getElementType())
    return emitError(op->getLoc()) << "a broadcast has the wrong dimensions";
  return lowering.set(op, lowering.broadcast(op->getLoc(), x, type, dims));
}

static LogicalResult lowerReshape(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  RankedTensorType type = lowering.at(op).getType();
  if (auto constant = x.getDefiningOp<ConstantOp>())
    if (auto elements = dyn_cast<DenseElementsAttr>(constant.getValue()))
      if (elements.getType().getNumElements() == type.getNumElements())
        return lowering.set(op, lowering.getBuilder().create<ConstantOp>(
                                    op->getLoc(), elements.reshape(type)));
  return lowering.set(op, lowering.reshape(op->getLoc(), x, type));
}

static LogicalResult lowerTranspose(Lowering &lowering, Operation *op) {
  ArrayRef<int64_t> permutation = getDims(op, "permutation");
  Value x = lowering.get(op, 0);
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return lowering.set(op, x);
  return lowering.set(
      op, lowering.getBuilder().create<TransposeOp>(
              op->getLoc(), lowering.at(op).getType(), x, permutation));
}

static LogicalResult lowerIota(Lowering &lowering, Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("iota_dimension");
  if (!dim)
    return emitError(op->getLoc()) << "an iota has no dimension";
  return lowering.set(op,
                      lowering.getBuilder().create<IotaOp>(
                          op->getLoc(), lowering.at(op).getType(), dim.getInt(),
                          ShardingAttr(), DenseI64ArrayAttr()));
}

static LogicalResult lowerDot(Lowering &lowering, Operation *op) {
  Attribute numbers = op->getAttr("dot_dimension_numbers");
  Value lhs = lowering.get(op, 0), rhs = lowering.get(op, 1);
  RankedTensorType type = lowering.at(op).getType();
  OpBuilder &builder = lowering.getBuilder();
  Type element = getTensorType(lhs).getElementType();
  if (element != getTensorType(rhs).getElementType())
    return emitError(op->getLoc()) << "a product of " << element << " and "
                                   << getTensorType(rhs).getElementType()
                                   << " is not supported: convert one operand";
  if (type.getElementType() != element &&
      !(element.isBF16() && type.getElementType().isF32())) {
    element = type.getElementType();
    lhs = convertTo(builder, op->getLoc(), lhs, element);
    rhs = convertTo(builder, op->getLoc(), rhs, element);
  }
  return lowering.set(op,
                      builder.create<DotGeneralOp>(
                          op->getLoc(), type, lhs, rhs,
                          getNumbers(numbers, "lhs_batching_dimensions"),
                          getNumbers(numbers, "rhs_batching_dimensions"),
                          getNumbers(numbers, "lhs_contracting_dimensions"),
                          getNumbers(numbers, "rhs_contracting_dimensions")));
}

/// Sums and extrema over dimensions of one tensor.
static LogicalResult lowerReduce(Lowering &lowering, Operation *op) {
  Block &body = op->getRegion(0).front();
  StringRef name = body.front().getName().getStringRef();
  bool isSimple = op->getNumOperands() == 2 && op->getNumResults() == 1 &&
                  llvm::hasNItems(body.getOperations(), 2) &&
                  body.front().getNumOperands() == 2;
  if (!isSimple)
    return emitError(op->getLoc())
           << "a reduction of several tensors, such as argmax, is not "
              "supported: expected a sum, maximum or minimum of one tensor";
  Value x = lowering.get(op, 0), initial = lowering.get(op, 1);
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  SmallVector<int64_t> dims(getDims(op, "dimensions"));
  llvm::sort(dims);
  if (!dims.empty() && (dims.front() < 0 || dims.back() >= from.getRank()))
    return emitError(loc) << "a reduction has the wrong dimensions";
  Arithmetic a(builder, loc, type);
  // A sum of no more than one element is that element.
  if (from.getNumElements() == type.getNumElements() &&
      name != "stablehlo.multiply")
    x = lowering.reshape(loc, x, type);
  bool isReduced = x.getType() == type;
  bool isBool = from.getElementType().isSignlessInteger(1);
  if (isBool && !isReduced)
    return emitError(loc) << "any and all over dimensions are not supported: "
                             "take the maximum or minimum of float32";
  std::optional<double> start = matchSplat(initial);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  auto withInitial = [&](Value value, double identity, auto combine) {
    if (isBool || (start && *start == identity))
      return value;
    return combine(value, lowering.broadcast(loc, initial, type, {}));
  };
  if (name == "stablehlo.add") {
    Value sum =
        isReduced ? x : reduce(builder, loc, ReductionKind::Sum, x, dims);
    return lowering.set(
        op, withInitial(sum, 0, [&](Value x, Value y) { return a.add(x, y); }));
  }
  if (name == "stablehlo.maximum" || (isBool && name == "stablehlo.or")) {
    Value most =
        isReduced ? x : reduce(builder, loc, ReductionKind::Max, x, dims);
    return lowering.set(op, withInitial(most, -infinity, [&](Value x, Value y) {
                          return a.max(x, y);
                        }));
  }
  if (name == "stablehlo.minimum" || (isBool && name == "stablehlo.and")) {
    if (!isReduced) {
      Arithmetic all(builder, loc, from);
      x = a.neg(reduce(builder, loc, ReductionKind::Max, all.neg(x), dims));
    }
    return lowering.set(op, withInitial(x, infinity, [&](Value x, Value y) {
                          return a.min(x, y);
                        }));
  }
  return emitError(loc) << "a reduction by " << name
                        << " is not supported: expected a sum, maximum or "
                           "minimum";
}

ArrayRef<OpLowering> shardc::getShapeLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.constant", lowerConstant, 0},
      {"stablehlo.broadcast_in_dim", lowerBroadcast, 1},
      {"stablehlo.reshape", lowerReshape, 1},
      {"stablehlo.transpose", lowerTranspose, 1},
      {"stablehlo.iota", lowerIota, 0},
      {"stablehlo.dot_general", lowerDot, 2},
      {"stablehlo.reduce", lowerReduce, -1, 1},
  };
  return table;
}
