//===- IndexOps.cpp - Lookups by index ------------------------------------===//
//
// A lookup along one dimension is a product with one-hot rows, or, if each row
// looks up in its own row, a sum over the selected element.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "OpaqueText.h"

using namespace mlir;
using namespace shardc;

/// Whether element `index` of the looked up dimension is that of `indices`: of
/// the shape `type`, whose dimension `dim` counts the elements and whose `dims`
/// are those of `indices`.
static Value buildOneHot(Lowering &lowering, Location loc, Value indices,
                         RankedTensorType type, int64_t dim,
                         ArrayRef<int64_t> dims) {
  OpBuilder &builder = lowering.getBuilder();
  Type element = getTensorType(indices).getElementType();
  type = type.clone(element);
  Arithmetic a(builder, loc, indices);
  Value clamped =
      a.min(a.max(indices, a.constant(0)),
            a.constant(static_cast<double>(type.getDimSize(dim) - 1)));
  Value wanted = lowering.broadcast(loc, clamped, type, dims);
  Value counted = builder.create<IotaOp>(loc, type, dim, ShardingAttr(),
                                         DenseI64ArrayAttr());
  return compare(builder, loc, CompareKind::EQ, counted, wanted);
}

/// For each row of `table` its element of dimension `dim` with the index of the
/// row in `indices`.
static Value pickInRows(Lowering &lowering, Location loc, Value table,
                        Value indices, int64_t dim) {
  RankedTensorType type = getTensorType(table);
  SmallVector<int64_t> others, shape;
  for (int64_t each = 0; each < type.getRank(); ++each)
    if (each != dim) {
      others.push_back(each);
      shape.push_back(type.getDimSize(each));
    }
  OpBuilder &builder = lowering.getBuilder();
  Value flat =
      lowering.reshape(loc, indices, getTensorType(indices).clone(shape));
  Value isWanted = buildOneHot(lowering, loc, flat, type, dim, others);
  Arithmetic a(builder, loc, table);
  return reduce(builder, loc, ReductionKind::Sum,
                a.select(isWanted, table, a.constant(0)), {dim});
}

/// Whether `value` counts the rows: jnp.arange(n), also with n added to what is
/// negative.
static bool isRowNumber(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto iota = dyn_cast<IotaOp>(op))
      return iota.getDim() == 0;
    if (isa<ReshapeOp, ConvertOp>(op)) {
      value = op->getOperand(0);
    } else if (auto select = dyn_cast<SelectOp>(op)) {
      auto test = select.getPredicate().getDefiningOp<CompareOp>();
      if (!test || test.getKind() != CompareKind::LT ||
          test.getLhs() != select.getOnFalse() ||
          matchSplat(test.getRhs()) != 0.0)
        return false;
      value = select.getOnFalse();
    } else {
      return false;
    }
  }
  return false;
}

/// x[jnp.arange(rows), i]: the pairs of indices are a concatenation.
static std::optional<Value> matchIndexOfRows(Lowering &lowering,
                                             Operation *op) {
  Operation *pairs = op->getOperand(1).getDefiningOp();
  if (!pairs || pairs->getName().getStringRef() != "stablehlo.concatenate" ||
      pairs->getNumOperands() != 2)
    return std::nullopt;
  Value rows = lowering.get(pairs, 0), columns = lowering.get(pairs, 1);
  RankedTensorType table = getTensorType(lowering.get(op, 0));
  if (table.getRank() != 2 || !isRowNumber(rows) ||
      getTensorType(rows).getNumElements() != table.getDimSize(0) ||
      getTensorType(columns).getNumElements() != table.getDimSize(0))
    return std::nullopt;
  return columns;
}

/// Pairs of indices have no tensor of their own: the lookup takes them apart.
static LogicalResult lowerConcatenate(Lowering &, Operation *op) {
  bool isIndex = llvm::all_of(op->getResult(0).getUses(), [](OpOperand &use) {
    return use.getOwner()->getName().getStringRef() == "stablehlo.gather" &&
           use.getOperandNumber() == 1;
  });
  if (isIndex)
    return success();
  return emitError(op->getLoc())
         << "a concatenation is not supported: add the products of the parts "
            "in "
            "place of the product of their concatenation";
}

static LogicalResult lowerGather(Lowering &lowering, Operation *op) {
  Attribute numbers = op->getAttr("dimension_numbers");
  Location loc = op->getLoc();
  Value table = lowering.get(op, 0);
  RankedTensorType from = getTensorType(table),
                   type = lowering.at(op).getType();
  SmallVector<int64_t> offset = getNumbers(numbers, "offset_dims"),
                       collapsed = getNumbers(numbers, "collapsed_slice_dims"),
                       batching = getNumbers(numbers, "operand_batching_dims"),
                       starts = getNumbers(numbers, "start_index_map");
  int64_t vectorDim = getNumber(numbers, "index_vector_dim", 0);
  auto sizes = op->getAttrOfType<DenseI64ArrayAttr>("slice_sizes");
  auto unsupported = [&] {
    return emitError(loc)
           << "this lookup is not supported: expected whole rows by one index, "
              "table[i], or one element of each row, "
              "jnp.take_along_axis(x, i[:, None], axis=1)";
  };
  if (starts == ArrayRef<int64_t>{0, 1} && collapsed == starts)
    if (std::optional<Value> columns = matchIndexOfRows(lowering, op)) {
      Value picked = pickInRows(lowering, loc, table, *columns, 1);
      return lowering.set(op, lowering.reshape(loc, picked, type));
    }
  Value indices = lowering.get(op, 1);
  if (!indices || starts.size() != 1 || collapsed != starts || !sizes ||
      sizes.size() != from.getRank() || starts[0] < 0 ||
      starts[0] >= from.getRank() || vectorDim < 0 ||
      !llvm::all_of(offset, [&](int64_t dim) {
        return dim >= 0 && dim < type.getRank();
      }))
    return unsupported();
  int64_t dim = starts[0];
  for (auto [index, size] : llvm::enumerate(sizes.asArrayRef())) {
    bool isWhole = size == from.getDimSize(index);
    bool isBatch = llvm::is_contained(batching, index);
    if (static_cast<int64_t>(index) != dim && !isBatch && !isWhole)
      return unsupported();
  }
  RankedTensorType indexType = getTensorType(indices);
  // The index vector has one element.
  SmallVector<int64_t> shape(indexType.getShape());
  if (vectorDim < static_cast<int64_t>(shape.size())) {
    if (shape[vectorDim] != 1)
      return unsupported();
    shape.erase(shape.begin() + vectorDim);
  }
  OpBuilder &builder = lowering.getBuilder();
  if (!batching.empty()) {
    // One element of each row.
    int64_t rows = from.getNumElements() / from.getDimSize(dim);
    if (static_cast<int64_t>(batching.size()) + 1 != from.getRank() ||
        type.getNumElements() != rows || !llvm::is_sorted(batching))
      return unsupported();
    Value picked = pickInRows(lowering, loc, table, indices, dim);
    return lowering.set(op, lowering.reshape(loc, picked, type));
  }
  if (!isa<FloatType>(from.getElementType()))
    return unsupported();
  Value flat = lowering.reshape(loc, indices, indexType.clone(shape));
  int64_t rank = shape.size();
  SmallVector<int64_t> hotShape(shape);
  hotShape.push_back(from.getDimSize(dim));
  auto leading = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value isWanted =
      buildOneHot(lowering, loc, flat, from.clone(hotShape), rank, leading);
  Value hot = convertTo(builder, loc, isWanted, from.getElementType());
  Value found = dot(builder, loc, hot, table, {rank}, {dim});
  // The looked up rows come last; `offset` says where they belong.
  SmallVector<int64_t> permutation(type.getRank(), -1);
  for (auto [index, place] : llvm::enumerate(offset))
    permutation[place] = rank + index;
  int64_t next = 0;
  for (int64_t &place : permutation)
    if (place < 0)
      place = next++;
  if (!llvm::is_sorted(permutation))
    found = builder.create<TransposeOp>(loc, type, found, permutation);
  return lowering.set(op, found);
}

/// A slice of one index: the sum over the selected element.
static LogicalResult lowerSlice(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  OpBuilder &builder = lowering.getBuilder();
  Location loc = op->getLoc();
  auto starts = op->getAttrOfType<DenseI64ArrayAttr>("start_indices");
  RankedTensorType type = lowering.at(op).getType();
  SmallVector<int64_t> cut;
  if (type.getRank() != getTensorType(x).getRank())
    return emitError(loc) << "a slice has the rank of its operand";
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (size != getTensorType(x).getDimSize(dim)) {
      if (size != 1 || !starts || starts.size() != type.getRank())
        return emitError(loc)
               << "a slice of several indices is not supported: keep the parts "
                  "as arrays of their own in place of slices of one";
      cut.push_back(dim);
    }
  for (int64_t dim : llvm::reverse(cut)) {
    Arithmetic a(builder, loc, x);
    Type index = builder.getI32Type();
    RankedTensorType indices = a.getType().clone(index);
    Value counted = builder.create<IotaOp>(loc, indices, dim, ShardingAttr(),
                                           DenseI64ArrayAttr());
    Value wanted =
        constantSplat(builder, loc, indices, static_cast<double>(starts[dim]));
    Value selected =
        a.select(compare(builder, loc, CompareKind::EQ, counted, wanted), x,
                 a.constant(0));
    x = reduce(builder, loc, ReductionKind::Sum, selected, {dim});
  }
  return lowering.set(op, lowering.reshape(loc, x, type));
}

ArrayRef<OpLowering> shardc::getIndexLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.concatenate", lowerConcatenate, -1},
      {"stablehlo.slice", lowerSlice, 1},
      {"stablehlo.gather", lowerGather, 2},
  };
  return table;
}
