//===- ScatterOps.cpp - Writing and adding by index -----------------------===//
//
// The reverse of lookups. An update whose index is out of range is left out.
//
//===----------------------------------------------------------------------===//

#include "Combinations.h"
#include "Lookups.h"
#include "OpaqueText.h"

using namespace mlir;
using namespace shardc;

namespace {
struct Scatter {
  Operation *op;
  /// What updates are combined by; without it they replace elements.
  std::optional<Combination> kind;
  IndexVectors vectors;
  /// Dimensions of the updates that are dimensions of the operand, and those of
  /// the operand that are not among them.
  SmallVector<int64_t> window, inserted;
};
} // namespace

/// Whether the body of an update gives its second argument.
static bool replaces(Block &body) {
  return body.getNumArguments() == 2 && body.back().getNumOperands() == 1 &&
         body.back().getOperand(0) == body.getArgument(1);
}

/// What an element is combined with where it has no update.
static Value getNone(Arithmetic &a, Combination kind) {
  return a.constant(getIdentity(kind, a.getType().getElementType()));
}

/// One element of each row.
static Value updateRows(Lowering &lowering, const Scatter &scatter,
                        const RowIndices &rows) {
  Location loc = scatter.op->getLoc();
  Value x = lowering.get(scatter.op, 0);
  RankedTensorType type = getTensorType(x);
  SmallVector<int64_t> others, shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != rows.dim) {
      others.push_back(dim);
      shape.push_back(type.getDimSize(dim));
    }
  Value mask = buildOneHot(lowering, loc, rows.indices, type.getShape(),
                           rows.dim, others);
  Value updates = lowering.broadcast(
      loc,
      lowering.reshape(loc, lowering.get(scatter.op, 2), type.clone(shape)),
      type, others);
  Arithmetic a(lowering.getBuilder(), loc, x);
  if (!scatter.kind)
    return a.select(mask, updates, x);
  return combine(a, *scatter.kind, x,
                 a.select(mask, updates, getNone(a, *scatter.kind)));
}

/// Several elements of each row.
static Value updateRowLists(Lowering &lowering, const Scatter &scatter,
                            const RowLists &lists) {
  Location loc = scatter.op->getLoc();
  Value x = lowering.get(scatter.op, 0), updates = lowering.get(scatter.op, 2);
  RankedTensorType type = getTensorType(x);
  int64_t rank = type.getRank();
  if (!scatter.kind || getTensorShape(updates) != getTensorShape(lists.indices))
    return Value();
  SmallVector<int64_t> pairs = lists.getPairs(), shape = pairs;
  shape.erase(shape.begin() + lists.listDim);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  Value isHere = buildOneHot(lowering, loc, lists.indices, pairs, rank, dims);
  Value all = lowering.broadcast(loc, updates, type.clone(pairs), dims);
  Arithmetic r(lowering.getBuilder(), loc, all);
  Value combined = combineDims(lowering, loc, *scatter.kind,
                               r.select(isHere, all, getNone(r, *scatter.kind)),
                               {lists.listDim}, type.clone(shape));
  return combine(Arithmetic(lowering.getBuilder(), loc, x), *scatter.kind, x,
                 moveDim(lowering, loc, combined, rank - 1, lists.dim));
}

/// The one window of the only index vector.
static Value updateWindow(Lowering &lowering, const Scatter &scatter) {
  Operation *op = scatter.op;
  Location loc = op->getLoc();
  OpBuilder &builder = lowering.getBuilder();
  Value x = lowering.get(op, 0), update = lowering.get(op, 2);
  RankedTensorType type = getTensorType(x), from = getTensorType(update);
  RankedTensorType scalar =
      getTensorType(lowering.get(op, 1)).clone(ArrayRef<int64_t>());
  SmallVector<int64_t> sizes;
  size_t next = 0;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    bool isInserted = llvm::is_contained(scatter.inserted, dim);
    if (!isInserted && (next == scatter.window.size() ||
                        scatter.window[next] >= from.getRank()))
      return Value();
    sizes.push_back(isInserted ? 1 : from.getDimSize(scatter.window[next++]));
  }
  SmallVector<Value> starts(type.getRank(),
                            constantSplat(builder, loc, scalar, 0));
  for (auto [entry, dim] : llvm::enumerate(scatter.vectors.starts))
    if (dim >= 0 && dim < type.getRank())
      starts[dim] = lowering.reshape(
          loc, getIndexEntry(lowering, op, scatter.vectors, entry), scalar);
  RankedTensorType window = type.clone(sizes);
  if (!isWindow(x, starts, sizes) ||
      window.getNumElements() != from.getNumElements())
    return Value();
  update = lowering.reshape(loc, update, window);
  if (scatter.kind)
    update = combine(Arithmetic(builder, loc, update), *scatter.kind,
                     takeWindow(lowering, loc, x, starts, sizes), update);
  Value updated = putWindow(lowering, loc, x, update, starts);
  for (auto [dim, start] : llvm::enumerate(starts)) {
    Value nearest = clampIndices(lowering, loc, start,
                                 type.getDimSize(dim) - sizes[dim] + 1);
    Value isInside = foldInteger(
        builder, compare(builder, loc, CompareKind::EQ, start, nearest));
    if (getConstantInteger(isInside) == 1)
      continue;
    Value mask =
        lowering.broadcast(loc, isInside, type.clone(builder.getI1Type()), {});
    updated = Arithmetic(builder, loc, x).select(mask, updated, x);
  }
  return updated;
}

/// Whole rows. Of several that replace the same one, the last does.
static Value updateWholeRows(Lowering &lowering, const Scatter &scatter,
                             const FlatIndices &flat) {
  Operation *op = scatter.op;
  Location loc = op->getLoc();
  OpBuilder &builder = lowering.getBuilder();
  Value updates = lowering.get(op, 2);
  RankedTensorType from = getTensorType(updates),
                   type = getTensorType(flat.operand);
  RankedTensorType indexType = getTensorType(flat.indices);
  // All indices in one dimension, then the row.
  SmallVector<int64_t> order, permuted;
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    if (!llvm::is_contained(scatter.window, dim))
      order.push_back(dim);
  llvm::append_range(order, scatter.window);
  if (static_cast<int64_t>(order.size()) != from.getRank() ||
      !llvm::all_of(scatter.window, [&](int64_t dim) {
        return dim >= 0 && dim < from.getRank();
      }))
    return Value();
  for (int64_t dim : order)
    permuted.push_back(from.getDimSize(dim));
  if (!llvm::is_sorted(order))
    updates =
        builder.create<TransposeOp>(loc, from.clone(permuted), updates, order);
  int64_t count = indexType.getNumElements(), size = type.getDimSize(flat.dim);
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + flat.dim);
  shape.insert(shape.begin(), count);
  RankedTensorType rowsType = type.clone(shape);
  if (rowsType.getNumElements() != from.getNumElements())
    return Value();
  updates = lowering.reshape(loc, updates, rowsType);
  Value indices = lowering.reshape(loc, flat.indices, indexType.clone({count}));
  Value hot = buildOneHot(lowering, loc, indices, {count, size}, 1, {0});
  Arithmetic a(builder, loc, flat.operand);
  if (scatter.kind == Combination::Sum &&
      isa<FloatType>(type.getElementType())) {
    Value sums =
        dot(builder, loc, convertTo(builder, loc, hot, type.getElementType()),
            updates, {0}, {0});
    return a.add(flat.operand, moveDim(lowering, loc, sums, 0, flat.dim));
  }
  shape.insert(shape.begin() + 1, size);
  SmallVector<int64_t> rowDims{0};
  llvm::append_range(rowDims, llvm::seq<int64_t>(2, shape.size()));
  if (scatter.kind) {
    Value rows = lowering.broadcast(loc, updates, type.clone(shape), rowDims);
    Value mask = lowering.broadcast(
        loc, hot, type.clone(shape, builder.getI1Type()), {0, 1});
    Arithmetic r(builder, loc, rows);
    Value combined =
        combineDims(lowering, loc, *scatter.kind,
                    r.select(mask, rows, getNone(r, *scatter.kind)), {0},
                    type.clone(ArrayRef(shape).drop_front()));
    return combine(a, *scatter.kind, flat.operand,
                   moveDim(lowering, loc, combined, 0, flat.dim));
  }
  Value numbers = lowering.count(loc, indexType.clone({count, size}), 0);
  Arithmetic n(builder, loc, numbers);
  Value last = reduce(builder, loc, ReductionKind::Max,
                      n.select(hot, numbers, n.constant(-1)), {0});
  Arithmetic l(builder, loc, last);
  Value chosen = takeRows(lowering, loc, updates,
                          clampIndices(lowering, loc, last, count), 0);
  Value isChosen = compare(builder, loc, CompareKind::GE, last, l.constant(0));
  Value mask = lowering.broadcast(loc, isChosen,
                                  type.clone(builder.getI1Type()), {flat.dim});
  return a.select(mask, moveDim(lowering, loc, chosen, 0, flat.dim),
                  flat.operand);
}

static LogicalResult lowerScatter(Lowering &lowering, Operation *op) {
  Attribute numbers = op->getAttr("scatter_dimension_numbers");
  Block &body = op->getRegion(0).front();
  std::optional<Combination> kind = getCombination(body);
  if (!kind && !replaces(body))
    return emitError(op->getLoc())
           << "updates by index are supported that set, add, multiply, or take "
              "the larger or smaller: x.at[i].set, .add, .multiply, .max, .min";
  Scatter scatter{op,
                  kind,
                  {getNumbers(numbers, "scatter_dims_to_operand_dims"),
                   getNumbers(numbers, "input_batching_dims"),
                   getNumbers(numbers, "scatter_indices_batching_dims"),
                   getNumber(numbers, "index_vector_dim", 0)},
                  getNumbers(numbers, "update_window_dims"),
                  getNumbers(numbers, "inserted_window_dims")};
  const IndexVectors &vectors = scatter.vectors;
  RankedTensorType type = lowering.at(op).getType();
  int64_t entries = getNumIndexEntries(lowering, op, vectors);
  Value updated;
  if (entries > 0 && entries == static_cast<int64_t>(vectors.starts.size())) {
    if (vectors.batching.empty() &&
        getTensorType(lowering.get(op, 1)).getNumElements() == entries)
      updated = updateWindow(lowering, scatter);
    else if (auto rows = scatter.window.empty()
                             ? matchRowIndices(lowering, op, vectors)
                             : std::nullopt)
      updated = updateRows(lowering, scatter, *rows);
    else if (auto lists = scatter.window.empty()
                              ? matchRowLists(lowering, op, vectors)
                              : std::nullopt)
      updated = updateRowLists(lowering, scatter, *lists);
    else if (auto flat = scatter.inserted == vectors.starts
                             ? flattenIndices(lowering, op, vectors, false)
                             : std::nullopt)
      updated = updateWholeRows(lowering, scatter, *flat);
  }
  if (!updated)
    return emitError(op->getLoc())
           << "this update is not supported: expected whole rows by their "
              "indices, table.at[i].add, one window, x.at[i:i + 2].set, or one "
              "element of each row";
  return lowering.set(op, lowering.reshape(op->getLoc(), updated, type));
}

ArrayRef<OpLowering> shardc::getScatterLowerings() {
  static const OpLowering table[] = {{"stablehlo.scatter", lowerScatter, 3, 1}};
  return table;
}
