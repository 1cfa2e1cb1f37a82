//===- SliceOps.cpp - Parts of tensors ------------------------------------===//

#include "Lookups.h"
#include "Lowering.h"
#include "MicrobatchLoop.h"

using namespace mlir;
using namespace shardc;

/// Whether attribute `name` has a number for each of `rank` dimensions.
static bool hasRank(Operation *op, StringRef name, int64_t rank) {
  return static_cast<int64_t>(getDims(op, name).size()) == rank;
}

static LogicalResult lowerSlice(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  ArrayRef<int64_t> starts = getDims(op, "start_indices"),
                    strides = getDims(op, "strides");
  if (type.getRank() != from.getRank() ||
      !hasRank(op, "start_indices", from.getRank()) ||
      !hasRank(op, "strides", from.getRank()))
    return emitError(op->getLoc()) << "a slice has the rank of its operand";
  if (type == from)
    return lowering.set(op, x);
  return lowering.set(op, lowering.getBuilder().create<ExtractSliceOp>(
                              op->getLoc(), type, x, starts, strides));
}

/// Padding of less than 0 takes elements away, after what it puts between them.
static LogicalResult lowerPad(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  RankedTensorType from = getTensorType(x), type = lowering.at(op).getType();
  int64_t rank = from.getRank();
  std::optional<double> fill = matchSplat(lowering.get(op, 1));
  if (!fill)
    return emitError(op->getLoc())
           << "padding with a value that is not a constant is not supported: "
              "concatenate with jnp.full";
  if (type.getRank() != rank || !hasRank(op, "edge_padding_low", rank) ||
      !hasRank(op, "edge_padding_high", rank) ||
      !hasRank(op, "interior_padding", rank))
    return emitError(op->getLoc()) << "padding has the rank of its operand";
  SmallVector<int64_t> low, starts, interior, shape;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t before = getDims(op, "edge_padding_low")[dim],
            after = getDims(op, "edge_padding_high")[dim];
    interior.push_back(getDims(op, "interior_padding")[dim]);
    low.push_back(std::max(before, int64_t(0)));
    starts.push_back(std::max(-before, int64_t(0)));
    shape.push_back(low.back() +
                    (from.getDimSize(dim) - 1) * (interior.back() + 1) + 1 +
                    std::max(after, int64_t(0)));
  }
  OpBuilder &builder = lowering.getBuilder();
  if (from.getNumElements() == 0)
    return lowering.set(op, lowering.at(op).constant(*fill));
  if (shape != from.getShape())
    x = builder.create<PadOp>(op->getLoc(), from.clone(shape), x, low, interior,
                              llvm::APFloat(*fill));
  if (x.getType() != type)
    x = builder.create<ExtractSliceOp>(op->getLoc(), type, x, starts,
                                       SmallVector<int64_t>(rank, 1));
  return lowering.set(op, x);
}

static LogicalResult lowerConcatenate(Lowering &lowering, Operation *op) {
  auto dim = op->getAttrOfType<IntegerAttr>("dimension");
  SmallVector<Value> parts;
  bool isRight = dim && op->getNumOperands() > 0 && op->getNumResults() == 1;
  for (unsigned i = 0; isRight && i < op->getNumOperands(); ++i) {
    parts.push_back(lowering.get(op, i));
    RankedTensorType type = getTensorType(parts.back());
    isRight = dim.getInt() >= 0 && dim.getInt() < type.getRank() &&
              type.getRank() == lowering.at(op).getType().getRank();
  }
  if (!isRight)
    return emitError(op->getLoc())
           << "a concatenation has operands of its rank, and a dimension";
  return lowering.set(op,
                      lowering.concatenate(op->getLoc(), parts, dim.getInt()));
}

static LogicalResult lowerReverse(Lowering &lowering, Operation *op) {
  constexpr int64_t most = 1024;
  Location loc = op->getLoc();
  Value x = lowering.get(op, 0);
  for (int64_t dim : getDims(op, "dimensions")) {
    if (dim < 0 || dim >= getTensorType(x).getRank())
      return emitError(loc) << "a reversal has the wrong dimensions";
    int64_t size = getTensorType(x).getDimSize(dim);
    if (size > most)
      return emitError(loc) << "reversing more than " << most
                            << " elements is not supported: reverse the data "
                               "before it is fed";
    SmallVector<Value> parts;
    for (int64_t index = size - 1; index >= 0; --index)
      parts.push_back(lowering.slice(loc, x, dim, index, 1));
    x = lowering.concatenate(loc, parts, dim);
  }
  return lowering.set(op, x);
}

static LogicalResult lowerDynamicSlice(Lowering &lowering, Operation *op) {
  SmallVector<Value> starts;
  for (unsigned i = 1; i < op->getNumOperands(); ++i)
    starts.push_back(lowering.get(op, i));
  ArrayRef<int64_t> sizes = getDims(op, "slice_sizes");
  Value x = op->getNumOperands() > 0 ? lowering.get(op, 0) : Value();
  if (!x || !isWindow(x, starts, sizes) || op->getNumResults() != 1)
    return emitError(op->getLoc())
           << "a dynamic slice has an index and a size for each dimension";
  if (MicrobatchLoop *loop = lowering.getLoop())
    if (Value slice = loop->takeSlice(op->getLoc(), x, starts, sizes))
      return lowering.set(op, slice);
  return lowering.set(op, takeWindow(lowering, op->getLoc(), x, starts, sizes));
}

static LogicalResult lowerDynamicUpdateSlice(Lowering &lowering,
                                             Operation *op) {
  SmallVector<Value> starts;
  for (unsigned i = 2; i < op->getNumOperands(); ++i)
    starts.push_back(lowering.get(op, i));
  if (op->getNumOperands() < 2 || op->getNumResults() != 1 ||
      !isWindow(lowering.get(op, 0), starts,
                getTensorShape(lowering.get(op, 1))))
    return emitError(op->getLoc())
           << "an update of a slice has an index for each dimension";
  Value x = lowering.get(op, 0), update = lowering.get(op, 1);
  if (MicrobatchLoop *loop = lowering.getLoop())
    if (Value sum = loop->putSlice(op->getLoc(), x, update, starts))
      return lowering.set(op, sum);
  return lowering.set(op, putWindow(lowering, op->getLoc(), x, update, starts));
}

ArrayRef<OpLowering> shardc::getSliceLowerings() {
  static const OpLowering table[] = {
      {"stablehlo.slice", lowerSlice, 1},
      {"stablehlo.pad", lowerPad, 2},
      {"stablehlo.concatenate", lowerConcatenate, -1},
      {"stablehlo.reverse", lowerReverse, 1},
      {"stablehlo.dynamic_slice", lowerDynamicSlice, -1},
      {"stablehlo.dynamic_update_slice", lowerDynamicUpdateSlice, -1},
  };
  return table;
}
