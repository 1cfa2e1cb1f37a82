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

static LogicalResult lowerGather(Lowering &lowering, Operation *op) {
  Attribute numbers = op->getAttr("dimension_numbers");
  Location loc = op->getLoc();
  Value table = lowering.get(op, 0), indices = lowering.get(op, 1);
  RankedTensorType from = getTensorType(table),
                   type = lowering.at(op).getType();
  RankedTensorType indexType = getTensorType(indices);
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
  if (starts.size() != 1 || collapsed != starts || !sizes)
    return unsupported();
  int64_t dim = starts[0];
  for (auto [index, size] : llvm::enumerate(sizes.asArrayRef())) {
    bool isWhole = size == from.getDimSize(index);
    bool isBatch = llvm::is_contained(batching, index);
    if (static_cast<int64_t>(index) != dim && !isBatch && !isWhole)
      return unsupported();
  }
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
    SmallVector<int64_t> rowShape;
    for (int64_t each : batching)
      rowShape.push_back(from.getDimSize(each));
    Value flat = lowering.reshape(loc, indices, indexType.clone(rowShape));
    Value isWanted = buildOneHot(lowering, loc, flat, from, dim, batching);
    Arithmetic a(builder, loc, table);
    Value picked = reduce(builder, loc, ReductionKind::Sum,
                          a.select(isWanted, table, a.constant(0)), {dim});
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

ArrayRef<OpLowering> shardc::getIndexLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.gather", lowerGather},
  };
  return table;
}
