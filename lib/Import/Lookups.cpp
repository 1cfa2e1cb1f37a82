//===- Lookups.cpp - Elements and rows by index ---------------------------===//

#include "Lookups.h"

using namespace mlir;
using namespace shardc;

static SmallVector<int64_t> getSequence(int64_t from, int64_t to) {
  return llvm::to_vector(llvm::seq<int64_t>(from, to));
}

/// The shape of `type` without dimension `dim`.
static SmallVector<int64_t> getOtherSizes(RankedTensorType type, int64_t dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  return shape;
}

Value shardc::clampIndices(Lowering &lowering, Location loc, Value indices,
                           int64_t size) {
  OpBuilder &builder = lowering.getBuilder();
  Arithmetic a(builder, loc, indices);
  Value positive = foldInteger(builder, a.max(indices, a.constant(0)));
  return foldInteger(
      builder, a.min(positive, a.constant(static_cast<double>(size - 1))));
}

Value shardc::buildOneHot(Lowering &lowering, Location loc, Value indices,
                          ArrayRef<int64_t> shape, int64_t dim,
                          ArrayRef<int64_t> dims) {
  RankedTensorType type = getTensorType(indices).clone(shape);
  Value wanted = lowering.broadcast(loc, indices, type, dims);
  return compare(lowering.getBuilder(), loc, CompareKind::EQ,
                 lowering.count(loc, type, dim), wanted);
}

Value shardc::sumSelected(Lowering &lowering, Location loc, Value mask, Value x,
                          int64_t dim) {
  OpBuilder &builder = lowering.getBuilder();
  Type element = getTensorType(x).getElementType();
  if (element.isSignlessInteger(1)) {
    Value numbers = convertTo(builder, loc, x, builder.getF32Type());
    Value sum = sumSelected(lowering, loc, mask, numbers, dim);
    Arithmetic a(builder, loc, sum);
    return compare(builder, loc, CompareKind::NE, sum, a.constant(0));
  }
  Arithmetic a(builder, loc, x);
  return reduce(builder, loc, ReductionKind::Sum,
                a.select(mask, x, a.constant(0)), {dim});
}

Value shardc::takeRows(Lowering &lowering, Location loc, Value table,
                       Value indices, int64_t dim) {
  OpBuilder &builder = lowering.getBuilder();
  RankedTensorType from = getTensorType(table);
  SmallVector<int64_t> shape(getTensorShape(indices));
  int64_t rank = shape.size();
  shape.push_back(from.getDimSize(dim));
  Value isWanted =
      buildOneHot(lowering, loc, indices, shape, rank, getSequence(0, rank));
  if (isa<FloatType>(from.getElementType()))
    return dot(builder, loc,
               convertTo(builder, loc, isWanted, from.getElementType()), table,
               {rank}, {dim});
  // A sum over elements that are selected: exact for integers.
  llvm::append_range(shape, getOtherSizes(from, dim));
  SmallVector<int64_t> places = getSequence(rank, shape.size());
  Value rows = lowering.broadcast(loc, moveDim(lowering, loc, table, dim, 0),
                                  from.clone(shape), places);
  Value mask =
      lowering.broadcast(loc, isWanted, from.clone(shape, builder.getI1Type()),
                         getSequence(0, rank + 1));
  return sumSelected(lowering, loc, mask, rows, rank);
}

Value shardc::moveDim(Lowering &lowering, Location loc, Value x, int64_t from,
                      int64_t to) {
  if (from == to)
    return x;
  RankedTensorType type = getTensorType(x);
  SmallVector<int64_t> order = getSequence(0, type.getRank()), shape;
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  for (int64_t dim : order)
    shape.push_back(type.getDimSize(dim));
  return lowering.getBuilder().create<TransposeOp>(loc, type.clone(shape), x,
                                                   order);
}

bool shardc::isWindow(Value x, ValueRange starts, ArrayRef<int64_t> sizes) {
  RankedTensorType type = getTensorType(x);
  if (static_cast<int64_t>(starts.size()) != type.getRank() ||
      static_cast<int64_t>(sizes.size()) != type.getRank())
    return false;
  for (auto [dim, start] : llvm::enumerate(starts))
    if (getTensorType(start).getRank() != 0 || sizes[dim] < 1 ||
        sizes[dim] > type.getDimSize(dim) ||
        !getTensorType(start).getElementType().isSignlessInteger())
      return false;
  return true;
}

/// `start` in the shape of `shape`.
static Value repeat(Lowering &lowering, Location loc, Value start,
                    ArrayRef<int64_t> shape) {
  return lowering.broadcast(loc, start, getTensorType(start).clone(shape), {});
}

/// takeWindow for one dimension, whose `start` is clamped.
static Value takeAlong(Lowering &lowering, Location loc, Value x, Value start,
                       int64_t dim, int64_t size) {
  RankedTensorType type = getTensorType(x);
  if (std::optional<int64_t> known = getConstantInteger(start))
    return lowering.slice(loc, x, dim, *known, size);
  OpBuilder &builder = lowering.getBuilder();
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  if (size == 1) {
    Value mask = buildOneHot(lowering, loc, start, type.getShape(), dim, {});
    return lowering.reshape(loc, sumSelected(lowering, loc, mask, x, dim),
                            type.clone(shape));
  }
  Value first = repeat(lowering, loc, start, {size});
  Value numbers = Arithmetic(builder, loc, first)
                      .add(first, lowering.count(loc, getTensorType(first), 0));
  return moveDim(lowering, loc, takeRows(lowering, loc, x, numbers, dim), 0,
                 dim);
}

Value shardc::takeWindow(Lowering &lowering, Location loc, Value x,
                         ValueRange starts, ArrayRef<int64_t> sizes) {
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    int64_t whole = getTensorType(x).getDimSize(dim);
    if (size != whole)
      x = takeAlong(lowering, loc, x,
                    clampIndices(lowering, loc, starts[dim], whole - size + 1),
                    dim, size);
  }
  return x;
}

/// `x` with `part` at `start`, which is not a constant, along `dim`.
static Value putAlong(Lowering &lowering, Location loc, Value x, Value part,
                      Value start, int64_t dim) {
  OpBuilder &builder = lowering.getBuilder();
  RankedTensorType type = getTensorType(x);
  Arithmetic a(builder, loc, x);
  int64_t size = getTensorType(part).getDimSize(dim);
  if (size == 1) {
    Value mask = buildOneHot(lowering, loc, start, type.getShape(), dim, {});
    Value everywhere =
        lowering.broadcast(loc, part, type, getSequence(0, type.getRank()));
    return a.select(mask, everywhere, x);
  }
  // Element i comes from element i - start of the part, if there is one.
  int64_t whole = type.getDimSize(dim);
  Value first = repeat(lowering, loc, start, {whole});
  Arithmetic numbers(builder, loc, first);
  Value place =
      numbers.sub(lowering.count(loc, getTensorType(first), 0), first);
  Value clamped = clampIndices(lowering, loc, place, size);
  Value moved = moveDim(lowering, loc,
                        takeRows(lowering, loc, part, clamped, dim), 0, dim);
  Value isInside = compare(builder, loc, CompareKind::EQ, place, clamped);
  Value mask =
      lowering.broadcast(loc, isInside, type.clone(builder.getI1Type()), {dim});
  return a.select(mask, moved, x);
}

Value shardc::putWindow(Lowering &lowering, Location loc, Value x, Value update,
                        ValueRange starts) {
  RankedTensorType type = getTensorType(x);
  int64_t dim = 0;
  while (dim < type.getRank() &&
         type.getDimSize(dim) == getTensorType(update).getDimSize(dim))
    ++dim;
  if (dim == type.getRank())
    return update;
  int64_t whole = type.getDimSize(dim),
          size = getTensorType(update).getDimSize(dim);
  Value start = clampIndices(lowering, loc, starts[dim], whole - size + 1);
  // In the part of `x` that has the window along `dim`, it is cut in dimensions
  // behind `dim` alone.
  Value part =
      putWindow(lowering, loc, takeAlong(lowering, loc, x, start, dim, size),
                update, starts);
  std::optional<int64_t> known = getConstantInteger(start);
  if (!known)
    return putAlong(lowering, loc, x, part, start, dim);
  SmallVector<Value> parts;
  if (*known > 0)
    parts.push_back(lowering.slice(loc, x, dim, 0, *known));
  parts.push_back(part);
  if (int64_t end = *known + size; end < whole)
    parts.push_back(lowering.slice(loc, x, dim, end, whole - end));
  return lowering.concatenate(loc, parts, dim);
}

/// Whether the entries of vectors are along a dimension of `type`.
static bool hasVectorDim(RankedTensorType type, const IndexVectors &vectors) {
  return vectors.vectorDim < type.getRank();
}

int64_t shardc::getNumIndexEntries(Lowering &lowering, Operation *op,
                                   const IndexVectors &vectors) {
  RankedTensorType type = getTensorType(lowering.get(op, 1));
  if (vectors.vectorDim < 0 || vectors.vectorDim > type.getRank())
    return 0;
  return hasVectorDim(type, vectors) ? type.getDimSize(vectors.vectorDim) : 1;
}

Value shardc::getIndexEntry(Lowering &lowering, Operation *op,
                            const IndexVectors &vectors, int64_t entry) {
  Value indices = lowering.get(op, 1);
  RankedTensorType type = getTensorType(indices);
  if (!hasVectorDim(type, vectors))
    return indices;
  Value part =
      lowering.slice(op->getLoc(), indices, vectors.vectorDim, entry, 1);
  return lowering.reshape(op->getLoc(), part,
                          type.clone(getOtherSizes(type, vectors.vectorDim)));
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

std::optional<RowIndices> shardc::matchRowIndices(Lowering &lowering,
                                                  Operation *op,
                                                  const IndexVectors &vectors) {
  RankedTensorType type = getTensorType(lowering.get(op, 0));
  int64_t entries = getNumIndexEntries(lowering, op, vectors);
  int64_t rank = type.getRank(), dim = -1;
  Value indices;
  if (entries == 1 && vectors.starts.size() == 1 &&
      static_cast<int64_t>(vectors.batching.size()) + 1 == rank &&
      llvm::is_sorted(vectors.batching) &&
      llvm::is_sorted(vectors.indexBatching)) {
    dim = vectors.starts[0];
    indices = getIndexEntry(lowering, op, vectors, 0);
  } else if (entries == 2 && rank == 2 && vectors.batching.empty() &&
             ArrayRef<int64_t>(vectors.starts) == ArrayRef<int64_t>{0, 1}) {
    Value rows = getIndexEntry(lowering, op, vectors, 0);
    if (!isRowNumber(rows) ||
        getTensorType(rows).getNumElements() != type.getDimSize(0))
      return std::nullopt;
    dim = 1;
    indices = getIndexEntry(lowering, op, vectors, 1);
  }
  if (dim < 0 || dim >= rank ||
      getTensorType(indices).getNumElements() * type.getDimSize(dim) !=
          type.getNumElements())
    return std::nullopt;
  return RowIndices{dim, lowering.reshape(op->getLoc(), indices,
                                          getTensorType(indices).clone(
                                              getOtherSizes(type, dim)))};
}

std::optional<RowLists> shardc::matchRowLists(Lowering &lowering, Operation *op,
                                              const IndexVectors &vectors) {
  RankedTensorType type = getTensorType(lowering.get(op, 0));
  int64_t rank = type.getRank(), inIndices = vectors.indexBatching.size();
  int64_t indexRank = getTensorType(lowering.get(op, 1)).getRank();
  if (getNumIndexEntries(lowering, op, vectors) != 1 ||
      vectors.starts.size() != 1 || inIndices + 1 != rank ||
      static_cast<int64_t>(vectors.batching.size()) != inIndices ||
      !llvm::is_sorted(vectors.batching) ||
      !llvm::is_sorted(vectors.indexBatching) ||
      vectors.vectorDim + 1 < indexRank)
    return std::nullopt;
  RowLists lists{vectors.starts[0], getIndexEntry(lowering, op, vectors, 0), 0,
                 0};
  RankedTensorType indexType = getTensorType(lists.indices);
  if (lists.dim < 0 || lists.dim >= rank || indexType.getRank() != rank)
    return std::nullopt;
  lists.size = type.getDimSize(lists.dim);
  while (llvm::is_contained(vectors.indexBatching, lists.listDim))
    ++lists.listDim;
  SmallVector<int64_t> others = getOtherSizes(indexType, lists.listDim);
  if (llvm::is_contained(vectors.batching, lists.dim) ||
      others != getOtherSizes(type, lists.dim))
    return std::nullopt;
  return lists;
}

std::optional<FlatIndices> shardc::flattenIndices(Lowering &lowering,
                                                  Operation *op,
                                                  const IndexVectors &vectors,
                                                  bool isClamped) {
  Location loc = op->getLoc();
  OpBuilder &builder = lowering.getBuilder();
  Value operand = lowering.get(op, 0);
  RankedTensorType type = getTensorType(operand);
  int64_t entries = vectors.starts.size();
  if (!vectors.batching.empty() || entries == 0 || entries > type.getRank() ||
      entries != getNumIndexEntries(lowering, op, vectors))
    return std::nullopt;
  if (entries == 1) {
    int64_t dim = vectors.starts[0];
    if (dim < 0 || dim >= type.getRank())
      return std::nullopt;
    Value indices = getIndexEntry(lowering, op, vectors, 0);
    if (isClamped)
      indices = clampIndices(lowering, loc, indices, type.getDimSize(dim));
    return FlatIndices{operand, indices, dim};
  }
  if (!llvm::equal(vectors.starts, llvm::seq<int64_t>(0, entries)))
    return std::nullopt;
  Value flat, isInside;
  int64_t size = 1;
  for (int64_t entry = 0; entry < entries; ++entry) {
    int64_t length = type.getDimSize(entry);
    Value given = getIndexEntry(lowering, op, vectors, entry);
    Value index = clampIndices(lowering, loc, given, length);
    Value isGiven = compare(builder, loc, CompareKind::EQ, given, index);
    Arithmetic a(builder, loc, index), truth(builder, loc, isGiven);
    flat = flat ? a.add(a.mul(flat, a.constant(static_cast<double>(length))),
                        index)
                : index;
    isInside = isInside ? truth.min(isInside, isGiven) : isGiven;
    size *= length;
  }
  Arithmetic a(builder, loc, flat);
  if (!isClamped)
    flat = a.select(isInside, flat, a.constant(-1));
  SmallVector<int64_t> shape(type.getShape().drop_front(entries));
  shape.insert(shape.begin(), size);
  return FlatIndices{lowering.reshape(loc, operand, type.clone(shape)), flat,
                     0};
}
