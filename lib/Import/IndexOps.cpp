//===- IndexOps.cpp - Lookups by index ------------------------------------===//

#include "Lookups.h"
#include "OpaqueText.h"

using namespace mlir;
using namespace shardc;

/// A window at the one index vector of `op`, as a tensor of its result type.
static LogicalResult lowerOneWindow(Lowering &lowering, Operation *op,
                                    const IndexVectors &vectors,
                                    ArrayRef<int64_t> sizes) {
  Location loc = op->getLoc();
  Value table = lowering.get(op, 0);
  RankedTensorType indexType = getTensorType(lowering.get(op, 1));
  RankedTensorType scalar = indexType.clone(ArrayRef<int64_t>());
  SmallVector<Value> starts(
      getTensorType(table).getRank(),
      constantSplat(lowering.getBuilder(), loc, scalar, 0));
  for (auto [entry, dim] : llvm::enumerate(vectors.starts))
    if (dim >= 0 && dim < static_cast<int64_t>(starts.size()))
      starts[dim] = lowering.reshape(
          loc, getIndexEntry(lowering, op, vectors, entry), scalar);
  RankedTensorType type = lowering.at(op).getType();
  Value window;
  if (isWindow(table, starts, sizes))
    window = takeWindow(lowering, loc, table, starts, sizes);
  if (!window ||
      getTensorType(window).getNumElements() != type.getNumElements())
    return emitError(loc) << "a lookup gives what its sizes say";
  return lowering.set(op, lowering.reshape(loc, window, type));
}

static LogicalResult lowerGather(Lowering &lowering, Operation *op) {
  Attribute numbers = op->getAttr("dimension_numbers");
  Location loc = op->getLoc();
  Value table = lowering.get(op, 0);
  RankedTensorType from = getTensorType(table),
                   type = lowering.at(op).getType();
  SmallVector<int64_t> offset = getNumbers(numbers, "offset_dims"),
                       collapsed = getNumbers(numbers, "collapsed_slice_dims");
  IndexVectors vectors{getNumbers(numbers, "start_index_map"),
                       getNumbers(numbers, "operand_batching_dims"),
                       getNumbers(numbers, "start_indices_batching_dims"),
                       getNumber(numbers, "index_vector_dim", 0)};
  ArrayRef<int64_t> sizes = getDims(op, "slice_sizes");
  int64_t entries = getNumIndexEntries(lowering, op, vectors);
  if (static_cast<int64_t>(sizes.size()) != from.getRank() ||
      entries != static_cast<int64_t>(vectors.starts.size()) || entries == 0)
    return emitError(loc) << "a lookup has indices and sizes of its operand";
  if (vectors.batching.empty() &&
      getTensorType(lowering.get(op, 1)).getNumElements() == entries)
    return lowerOneWindow(lowering, op, vectors, sizes);
  bool isElements = llvm::all_of(sizes, [](int64_t size) { return size == 1; });
  if (isElements)
    if (auto rows = matchRowIndices(lowering, op, vectors)) {
      Value indices = clampIndices(lowering, loc, rows->indices,
                                   from.getDimSize(rows->dim));
      SmallVector<int64_t> others;
      for (int64_t dim = 0; dim < from.getRank(); ++dim)
        if (dim != rows->dim)
          others.push_back(dim);
      Value mask = buildOneHot(lowering, loc, indices, from.getShape(),
                               rows->dim, others);
      Value picked = sumSelected(lowering, loc, mask, table, rows->dim);
      if (getTensorType(picked).getNumElements() == type.getNumElements())
        return lowering.set(op, lowering.reshape(loc, picked, type));
    }
  if (auto lists =
          isElements ? matchRowLists(lowering, op, vectors) : std::nullopt) {
    Value indices = clampIndices(lowering, loc, lists->indices, lists->size);
    int64_t rank = from.getRank();
    SmallVector<int64_t> pairs = lists->getPairs(), dims, places;
    for (int64_t dim = 0; dim < rank; ++dim)
      if (dims.push_back(dim); dim != lists->listDim)
        places.push_back(dim);
    places.insert(places.begin() + lists->dim, rank);
    Value isHere = buildOneHot(lowering, loc, indices, pairs, rank, dims);
    Value rows = lowering.broadcast(loc, table, from.clone(pairs), places);
    Value found = sumSelected(lowering, loc, isHere, rows, rank);
    if (found.getType() == type)
      return lowering.set(op, found);
  }
  bool isWhole = collapsed == vectors.starts;
  for (auto [dim, size] : llvm::enumerate(sizes))
    isWhole &= llvm::is_contained(vectors.starts, static_cast<int64_t>(dim))
                   ? size == 1
                   : size == from.getDimSize(dim);
  auto flat =
      isWhole ? flattenIndices(lowering, op, vectors, true) : std::nullopt;
  if (!flat)
    return emitError(loc)
           << "this lookup is not supported: expected whole rows by their "
              "indices, table[i], or one element of each row, "
              "jnp.take_along_axis(x, i[:, None], axis=1)";
  Value found =
      takeRows(lowering, loc, flat->operand, flat->indices, flat->dim);
  // The looked up rows come last; `offset` says where they belong.
  int64_t rank = getTensorType(flat->indices).getRank();
  SmallVector<int64_t> permutation(type.getRank(), -1);
  bool isRight = getTensorType(found).getRank() == type.getRank() &&
                 rank + static_cast<int64_t>(offset.size()) == type.getRank();
  for (auto [index, place] : llvm::enumerate(offset))
    if (isRight && place >= 0 && place < type.getRank())
      permutation[place] = rank + index;
  int64_t next = 0;
  for (int64_t &place : permutation)
    if (place < 0)
      place = next++;
  if (!isRight || next != rank)
    return emitError(loc) << "a lookup has the dimensions of its result";
  if (!llvm::is_sorted(permutation))
    found = lowering.getBuilder().create<TransposeOp>(loc, type, found,
                                                      permutation);
  return lowering.set(op, found);
}

ArrayRef<OpLowering> shardc::getIndexLowerings() {
  static const OpLowering table[] = {{"stablehlo.gather", lowerGather, 2}};
  return table;
}
