//===- SortOps.cpp - Sorting of StableHLO ---------------------------------===//
//
// The place of an element is the number of elements that go before it, which a
// comparison of all pairs counts. Each place then takes the element whose place
// it is. So both are sums, over as many pairs as the square of the dimension.
//
//===----------------------------------------------------------------------===//

#include "Lookups.h"
#include "OpaqueText.h"
#include "SignlessIntegers.h"

using namespace mlir;
using namespace shardc;

static SmallVector<int64_t> getSequence(int64_t size) {
  return llvm::to_vector(llvm::seq<int64_t>(0, size));
}

/// The type of `x` with one more dimension of `size`, the last.
static RankedTensorType getPairs(Value x, int64_t size) {
  RankedTensorType type = getTensorType(x);
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(size);
  return type.clone(shape);
}

/// Whether `x` goes before `y` in ascending order, and whether they are equal;
/// NaN is greater than all numbers.
static std::pair<Value, Value> compareInOrder(OpBuilder &builder, Location loc,
                                              Value x, Value y) {
  Value isLess = compare(builder, loc, CompareKind::LT, x, y);
  Value isEqual = compare(builder, loc, CompareKind::EQ, x, y);
  if (!isa<FloatType>(getTensorType(x).getElementType()))
    return {isLess, isEqual};
  Arithmetic truth(builder, loc, isLess);
  Value isNan = compare(builder, loc, CompareKind::NE, y, y);
  Value isNumber = compare(builder, loc, CompareKind::EQ, x, x);
  Value isOther = compare(builder, loc, CompareKind::NE, x, x);
  return {truth.max(isLess, truth.min(isNumber, isNan)),
          truth.max(isEqual, truth.min(isOther, isNan))};
}

/// The number of elements along `dim` that go before each one by `keys`, of
/// which the first decides that differs; of equal ones the first does.
static Value countBefore(Lowering &lowering, Location loc, ValueRange keys,
                         int64_t dim, bool isDescending) {
  OpBuilder &builder = lowering.getBuilder();
  RankedTensorType type = getTensorType(keys.front());
  int64_t rank = type.getRank();
  SmallVector<int64_t> dims = getSequence(rank), others = dims;
  others[dim] = rank;
  RankedTensorType numbers =
      getPairs(keys.front(), type.getDimSize(dim)).clone(builder.getI32Type());
  Value goesBefore =
      compare(builder, loc, CompareKind::LT, lowering.count(loc, numbers, rank),
              lowering.count(loc, numbers, dim));
  Arithmetic truth(builder, loc, goesBefore);
  for (Value key : llvm::reverse(keys)) {
    RankedTensorType pairs = getPairs(key, type.getDimSize(dim));
    Value own = lowering.broadcast(loc, key, pairs, dims);
    Value other = lowering.broadcast(loc, key, pairs, others);
    auto [isBefore, isEqual] = compareInOrder(
        builder, loc, isDescending ? own : other, isDescending ? other : own);
    goesBefore = truth.max(isBefore, truth.min(isEqual, goesBefore));
  }
  return reduce(builder, loc, ReductionKind::Sum,
                convertTo(builder, loc, goesBefore, builder.getI32Type()),
                {rank});
}

/// The first `size` elements of `x` along `dim`, in the order of `places`.
static Value arrange(Lowering &lowering, Location loc, Value x, Value places,
                     int64_t dim, int64_t size) {
  int64_t rank = getTensorType(x).getRank();
  RankedTensorType pairs = getPairs(x, size);
  SmallVector<int64_t> dims = getSequence(rank);
  Value isHere =
      buildOneHot(lowering, loc, places, pairs.getShape(), rank, dims);
  Value values = lowering.broadcast(loc, x, pairs, dims);
  return moveDim(lowering, loc, sumSelected(lowering, loc, isHere, values, dim),
                 rank - 1, dim);
}

/// Whether the dimension may be sorted.
static LogicalResult checkSize(Operation *op, int64_t size) {
  constexpr int64_t most = 1024;
  if (size <= most)
    return success();
  return emitError(op->getLoc())
         << op->getName() << " of " << size << " elements is not supported, "
         << "since all pairs are compared; expected at most " << most
         << ": sort the data before it is fed";
}

/// Whether `value` is computed from `argument` alone, of the arguments of its
/// block.
static bool dependsOn(Value value, BlockArgument argument) {
  Operation *maker = value.getDefiningOp();
  return maker ? llvm::all_of(
                     maker->getOperands(),
                     [&](Value each) { return dependsOn(each, argument); })
               : value == argument;
}

/// A key of a sort: the operand of this number, as `comparison` has it.
struct SortKey {
  unsigned operand;
  Operation *comparison;
};

/// The key of which the body of a sort compares two elements by `direction`.
static std::optional<SortKey> matchKey(Value value, StringRef direction,
                                       Block &body) {
  Operation *test = value.getDefiningOp();
  if (!test || test->getName().getStringRef() != "stablehlo.compare" ||
      test->getNumOperands() != 2 ||
      getLastWord(test->getAttr("comparison_direction")) != direction)
    return std::nullopt;
  for (unsigned key = 0; 2 * key + 1 < body.getNumArguments(); ++key)
    if (dependsOn(test->getOperand(0), body.getArgument(2 * key)) &&
        dependsOn(test->getOperand(1), body.getArgument(2 * key + 1)))
      return SortKey{key, test};
  return std::nullopt;
}

/// The operands of `value` if it is an op of StableHLO with this name.
static OperandRange matchOp(Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  bool isIt =
      op && op->getName().getStringRef() == name && op->getNumOperands() == 2;
  return isIt ? op->getOperands() : OperandRange(nullptr, 0);
}

/// The keys in their order if `value` says that the first of two elements goes
/// before the second, in ascending order:
///
///   x0 < y0    or    x0 < y0 or (x0 == y0 and ...)
///
/// None for any other value.
static SmallVector<SortKey> matchKeys(Value value, Block &body) {
  if (std::optional<SortKey> key = matchKey(value, "LT", body))
    return {*key};
  OperandRange either = matchOp(value, "stablehlo.or");
  if (either.empty())
    return {};
  OperandRange both = matchOp(either[1], "stablehlo.and");
  std::optional<SortKey> less = matchKey(either[0], "LT", body);
  if (both.empty() || !less)
    return {};
  std::optional<SortKey> equal = matchKey(both[0], "EQ", body);
  SmallVector<SortKey> keys = matchKeys(both[1], body);
  if (!equal || equal->operand != less->operand || keys.empty())
    return {};
  keys.insert(keys.begin(), *less);
  return keys;
}

static SmallVector<SortKey> findKeys(Block &body) {
  if (body.back().getNumOperands() != 1)
    return {};
  return matchKeys(body.back().getOperand(0), body);
}

static LogicalResult lowerSort(Lowering &lowering, Operation *op) {
  SmallVector<SortKey> keys = findKeys(op->getRegion(0).front());
  auto dim = op->getAttrOfType<IntegerAttr>("dimension");
  if (op->getNumOperands() == 0 ||
      op->getOperandTypes() != op->getResultTypes() || !dim)
    return emitError(op->getLoc()) << "a sort gives the types that it takes";
  RankedTensorType type = getTensorType(lowering.get(op, 0));
  if (dim.getInt() < 0 || dim.getInt() >= type.getRank() ||
      llvm::any_of(op->getOperandTypes(), [&](Type each) {
        return cast<RankedTensorType>(each).getShape() != type.getShape();
      }))
    return emitError(op->getLoc()) << "a sort has the wrong dimensions";
  if (keys.empty())
    return emitError(op->getLoc())
           << "a sort by this comparison is not supported: expected ascending "
              "keys, as of jax.lax.sort";
  if (failed(checkSize(op, type.getDimSize(dim.getInt()))))
    return failure();
  SmallVector<Value> values;
  for (SortKey key : keys) {
    Value value = lowering.get(op, key.operand);
    values.push_back(isUnsigned(key.comparison)
                         ? toSigned(lowering, op->getLoc(), value)
                         : value);
  }
  Value places = countBefore(lowering, op->getLoc(), values, dim.getInt(),
                             /*isDescending=*/false);
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults()))
    lowering.set(result,
                 arrange(lowering, op->getLoc(), lowering.get(operand), places,
                         dim.getInt(), type.getDimSize(dim.getInt())));
  return success();
}

static LogicalResult lowerTopK(Lowering &lowering, Operation *op) {
  Location loc = op->getLoc();
  auto k = op->getAttrOfType<IntegerAttr>("k");
  bool isRight = k && op->getNumOperands() == 1 && op->getNumResults() == 2;
  Value x = isRight ? lowering.get(op, 0) : Value();
  int64_t dim = x ? getTensorType(x).getRank() - 1 : -1;
  if (dim < 0 || k.getInt() < 1 ||
      k.getInt() > getTensorType(x).getDimSize(dim))
    return emitError(loc) << "top_k takes some of the elements of a dimension";
  if (failed(checkSize(op, getTensorType(x).getDimSize(dim))))
    return failure();
  Value places = countBefore(lowering, loc, x, dim, /*isDescending=*/true);
  Value indices = lowering.count(loc, getTensorType(places), dim);
  lowering.set(op->getResult(0),
               arrange(lowering, loc, x, places, dim, k.getInt()));
  lowering.set(op->getResult(1),
               arrange(lowering, loc, indices, places, dim, k.getInt()));
  return success();
}

ArrayRef<OpLowering> shardc::getSortLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.sort", lowerSort, -1, 1},
      {"chlo.top_k", lowerTopK, -1},
  };
  return table;
}
