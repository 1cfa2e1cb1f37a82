//===- ReduceOps.cpp - Reductions of StableHLO ----------------------------===//
//
// The core has sums and maxima. A minimum is the maximum of what is reversed in
// order; products and cumulative reductions are made of slices.
//
//===----------------------------------------------------------------------===//

#include "Combinations.h"
#include "OpaqueText.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

std::optional<Combination> shardc::getCombination(Block &body) {
  if (!llvm::hasNItems(body.getOperations(), 2) ||
      body.front().getNumOperands() != 2)
    return std::nullopt;
  StringRef name = body.front().getName().getStringRef();
  if (name == "stablehlo.add")
    return Combination::Sum;
  if (name == "stablehlo.multiply")
    return Combination::Product;
  if (name == "stablehlo.maximum" || name == "stablehlo.or")
    return Combination::Max;
  if (name == "stablehlo.minimum" || name == "stablehlo.and")
    return Combination::Min;
  return std::nullopt;
}

Value shardc::combine(Arithmetic a, Combination kind, Value x, Value y) {
  switch (kind) {
  case Combination::Sum:
    return a.add(x, y);
  case Combination::Product:
    return a.mul(x, y);
  case Combination::Max:
    return a.max(x, y);
  case Combination::Min:
    return a.min(x, y);
  }
  return Value();
}

double shardc::getIdentity(Combination kind, Type element) {
  if (kind == Combination::Sum)
    return 0;
  if (kind == Combination::Product)
    return 1;
  double sign = kind == Combination::Max ? -1 : 1;
  if (isa<FloatType>(element))
    return sign * std::numeric_limits<double>::infinity();
  if (element.isSignlessInteger(1))
    return kind == Combination::Max ? 0 : 1;
  double least = -std::ldexp(1.0, element.getIntOrFloatBitWidth() - 1);
  return kind == Combination::Max ? least : -1 - least;
}

/// Reverses the order of all numbers, exactly: -x, or -1 - x of integers.
static Value reverseOrder(OpBuilder &builder, Location loc, Value x) {
  Arithmetic a(builder, loc, x);
  return isa<FloatType>(a.getType().getElementType())
             ? a.neg(x)
             : a.sub(a.constant(-1), x);
}

/// The product over dimension `dim`: halves are multiplied until one is left.
static Value multiplyAlong(Lowering &lowering, Location loc, Value x,
                           int64_t dim) {
  OpBuilder &builder = lowering.getBuilder();
  while (getTensorType(x).getDimSize(dim) > 1) {
    int64_t size = getTensorType(x).getDimSize(dim), half = size / 2;
    Value lower = lowering.slice(loc, x, dim, 0, half);
    Value upper = lowering.slice(loc, x, dim, half, half);
    Value products = Arithmetic(builder, loc, lower).mul(lower, upper);
    x = size % 2 == 0
            ? products
            : lowering.concatenate(
                  loc, {products, lowering.slice(loc, x, dim, size - 1, 1)},
                  dim);
  }
  return x;
}

Value shardc::combineDims(Lowering &lowering, Location loc, Combination kind,
                          Value x, ArrayRef<int64_t> dims,
                          RankedTensorType type) {
  OpBuilder &builder = lowering.getBuilder();
  Type element = type.getElementType();
  // No more than one element each: that element.
  if (getTensorType(x).getNumElements() == type.getNumElements())
    return lowering.reshape(loc, x, type);
  if (element.isSignlessInteger(1)) {
    // Booleans as the numbers 0 and 1.
    RankedTensorType numbers = type.clone(builder.getF32Type());
    Value found = combineDims(lowering, loc, kind,
                              convertTo(builder, loc, x, builder.getF32Type()),
                              dims, numbers);
    Arithmetic a(builder, loc, numbers);
    return compare(builder, loc, CompareKind::NE, found, a.constant(0));
  }
  switch (kind) {
  case Combination::Sum:
    return reduce(builder, loc, ReductionKind::Sum, x, dims);
  case Combination::Max:
    return reduce(builder, loc, ReductionKind::Max, x, dims);
  case Combination::Min:
    return reverseOrder(builder, loc,
                        reduce(builder, loc, ReductionKind::Max,
                               reverseOrder(builder, loc, x), dims));
  case Combination::Product:
    break;
  }
  for (int64_t dim : dims)
    x = multiplyAlong(lowering, loc, x, dim);
  return lowering.reshape(loc, x, type);
}

/// Whether the body of a reduction of values and their indices keeps the larger
/// (smaller) value, and of equal ones the first: argmax (argmin) of JAX.
static std::optional<Combination> getExtremum(Block &body) {
  auto isTest = [&](Operation &op, StringRef direction, unsigned argument) {
    return op.getName().getStringRef() == "stablehlo.compare" &&
           op.getOperands() == ValueRange({body.getArgument(argument),
                                           body.getArgument(argument + 2)}) &&
           getLastWord(op.getAttr("comparison_direction")) == direction;
  };
  if (body.getNumArguments() != 4 ||
      llvm::none_of(body, [&](Operation &op) { return isTest(op, "LT", 1); }))
    return std::nullopt;
  if (isTest(body.front(), "GT", 0))
    return Combination::Max;
  if (isTest(body.front(), "LT", 0))
    return Combination::Min;
  return std::nullopt;
}

/// The index of the extremum: the least of the indices at which the extremum
/// is, NaN being one.
static LogicalResult lowerExtremumAndIndex(Lowering &lowering, Operation *op,
                                           Combination kind) {
  Location loc = op->getLoc();
  OpBuilder &builder = lowering.getBuilder();
  Value x = lowering.get(op, 0);
  ArrayRef<int64_t> dims = getDims(op, "dimensions");
  auto indices = lowering.get(op, 1).getDefiningOp<IotaOp>();
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  if (dims.size() != 1 || dims[0] < 0 || dims[0] >= from.getRank() ||
      !indices || static_cast<int64_t>(indices.getDim()) != dims[0])
    return emitError(loc) << "expected the extremum of one dimension, as "
                             "jnp.argmax(x, axis=-1)";
  int64_t dim = dims[0];
  Value extremum = combineDims(lowering, loc, kind, x, dims, type);
  SmallVector<int64_t> others;
  for (int64_t each = 0; each < from.getRank(); ++each)
    if (each != dim)
      others.push_back(each);
  Value isThere = compare(builder, loc, CompareKind::EQ, x,
                          lowering.broadcast(loc, extremum, from, others));
  Arithmetic truth(builder, loc, isThere);
  isThere = truth.max(isThere, compare(builder, loc, CompareKind::NE, x, x));
  Arithmetic a(builder, loc, indices);
  Value least = a.select(isThere, indices,
                         a.constant(static_cast<double>(from.getDimSize(dim))));
  Value index =
      combineDims(lowering, loc, Combination::Min, least, dims,
                  type.clone(getTensorType(indices).getElementType()));
  lowering.set(op->getResult(0), extremum);
  lowering.set(op->getResult(1), index);
  return success();
}

static LogicalResult lowerReduce(Lowering &lowering, Operation *op) {
  Block &body = op->getRegion(0).front();
  Location loc = op->getLoc();
  if (op->getNumOperands() == 4 && op->getNumResults() == 2)
    if (std::optional<Combination> kind = getExtremum(body))
      return lowerExtremumAndIndex(lowering, op, *kind);
  if (op->getNumOperands() != 2 || op->getNumResults() != 1)
    return emitError(loc) << "a reduction of several tensors is not supported, "
                             "but for argmax and argmin: reduce each of them";
  std::optional<Combination> kind = getCombination(body);
  if (!kind)
    return emitError(loc) << "a reduction by "
                          << body.front().getName().getStringRef()
                          << " is not supported: expected a sum, product, "
                             "maximum or minimum";
  Value x = lowering.get(op, 0), initial = lowering.get(op, 1);
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  SmallVector<int64_t> dims(getDims(op, "dimensions"));
  llvm::sort(dims);
  if (!dims.empty() && (dims.front() < 0 || dims.back() >= from.getRank()))
    return emitError(loc) << "a reduction has the wrong dimensions";
  if (from.getNumElements() == 0)
    return lowering.set(op, lowering.broadcast(loc, initial, type, {}));
  Value combined = combineDims(lowering, loc, *kind, x, dims, type);
  std::optional<double> start = matchSplat(initial);
  if (start && *start == getIdentity(*kind, type.getElementType()))
    return lowering.set(op, combined);
  return lowering.set(op, combine(lowering.at(op), *kind, combined,
                                  lowering.broadcast(loc, initial, type, {})));
}

/// jnp.cumsum and its like: element i combines those up to i, or those from i
/// on in reverse. Twice as many with each step (Hillis and Steele, 1986).
static LogicalResult lowerReduceWindow(Lowering &lowering, Operation *op) {
  Location loc = op->getLoc();
  std::optional<Combination> kind =
      op->getNumOperands() == 2 ? getCombination(op->getRegion(0).front())
                                : std::nullopt;
  auto unsupported = [&] {
    return emitError(loc) << "windows are supported for jnp.cumsum, cumprod, "
                             "cummax and cummin "
                             "alone: reshape, and reduce over a dimension";
  };
  if (!kind)
    return unsupported();
  Value x = lowering.get(op, 0);
  RankedTensorType type = lowering.at(op).getType();
  ArrayRef<int64_t> window = getDims(op, "window_dimensions");
  auto padding = op->getAttrOfType<DenseIntElementsAttr>("padding");
  auto isOnes = [&](StringRef name) {
    return llvm::all_of(getDims(op, name), [](int64_t n) { return n == 1; });
  };
  std::optional<double> start = matchSplat(lowering.get(op, 1));
  double identity = getIdentity(*kind, type.getElementType());
  int64_t rank = type.getRank(), dim = -1;
  if (x.getType() != type || static_cast<int64_t>(window.size()) != rank ||
      !padding || padding.getNumElements() != 2 * rank ||
      !isOnes("window_strides") || !isOnes("base_dilations") ||
      !isOnes("window_dilations") || start != identity)
    return unsupported();
  SmallVector<int64_t> edges(padding.getValues<int64_t>());
  bool isReverse = false;
  for (int64_t each = 0; each < rank; ++each) {
    int64_t low = edges[2 * each], high = edges[2 * each + 1];
    if (window[each] == 1 && low == 0 && high == 0)
      continue;
    if (dim >= 0 || window[each] != type.getDimSize(each) ||
        std::min(low, high) != 0 || std::max(low, high) != window[each] - 1)
      return unsupported();
    dim = each;
    isReverse = high > 0;
  }
  if (dim < 0)
    return lowering.set(op, x);
  int64_t size = type.getDimSize(dim);
  Arithmetic a = lowering.at(op);
  for (int64_t step = 1; step < size; step *= 2) {
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = step;
    Value none =
        constantSplat(lowering.getBuilder(), loc, type.clone(shape), identity);
    Value moved =
        lowering.slice(loc, x, dim, isReverse ? step : 0, size - step);
    moved = isReverse ? lowering.concatenate(loc, {moved, none}, dim)
                      : lowering.concatenate(loc, {none, moved}, dim);
    x = combine(a, *kind, x, moved);
  }
  return lowering.set(op, x);
}

ArrayRef<OpLowering> shardc::getReduceLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.reduce", lowerReduce, -1, 1},
      {"stablehlo.reduce_window", lowerReduceWindow, -1, 1},
  };
  return table;
}
