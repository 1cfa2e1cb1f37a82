//===- CoreOps.cpp - Verifiers and folders of the tensor core -------------===//
//
// Each verifier checks the numbered constraints of its op in ShardcCoreOps.td;
// its message has the expected and the found.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Permutations.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace shardc;

/// `result` must have the shape of `operand`.
static LogicalResult verifySameShape(Operation *op, Value operand,
                                     Value result) {
  if (getTensorType(operand).getShape() == getTensorType(result).getShape())
    return success();
  return op->emitOpError("result must have the shape of the operand, got ")
         << result.getType() << " for " << operand.getType();
}

/// `result` must be a tensor of `shape` with the element type of `operand`.
static LogicalResult verifyResult(Operation *op, Value operand, Value result,
                                  ArrayRef<int64_t> shape) {
  auto expected =
      RankedTensorType::get(shape, getTensorType(operand).getElementType());
  if (result.getType() == expected)
    return success();
  return op->emitOpError("result must be ")
         << expected << ", got " << result.getType();
}

/// `dims` must be ascending and in [0, rank).
static LogicalResult verifyAscending(Operation *op, StringRef what,
                                     ArrayRef<int64_t> dims, int64_t rank) {
  int64_t previous = -1;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank)
      return op->emitOpError(what)
             << " has dimension " << dim << ", out of range for rank " << rank;
    if (dim <= previous)
      return op->emitOpError(what)
             << " must be ascending, but " << dim << " follows " << previous;
    previous = dim;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

LogicalResult CompareOp::verify() {
  return verifySameShape(*this, getLhs(), getResult());
}

LogicalResult SelectOp::verify() {
  if (getTensorType(getPredicate()).getShape() ==
      getTensorType(getResult()).getShape())
    return success();
  return emitOpError("predicate must have the shape of the result, got ")
         << getPredicate().getType() << " for " << getResult().getType();
}

LogicalResult ConvertOp::verify() {
  return verifySameShape(*this, getOperand(), getResult());
}

LogicalResult BitcastOp::verify() {
  if (failed(verifySameShape(*this, getOperand(), getResult())))
    return failure();
  Type from = getTensorType(getOperand()).getElementType();
  Type to = getTensorType(getResult()).getElementType();
  if (isa<FloatType>(from) != isa<FloatType>(to) &&
      from.getIntOrFloatBitWidth() == to.getIntOrFloatBitWidth())
    return success();
  return emitOpError("expected a float and an integer of as many bits, got ")
         << from << " and " << to;
}

//===----------------------------------------------------------------------===//
// DotGeneralOp
//===----------------------------------------------------------------------===//

static SmallVector<int64_t> getFree(int64_t rank, ArrayRef<int64_t> batching,
                                    ArrayRef<int64_t> contracting) {
  SmallVector<int64_t> free;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batching, dim) &&
        !llvm::is_contained(contracting, dim))
      free.push_back(dim);
  return free;
}

SmallVector<int64_t> DotGeneralOp::getLhsFree() {
  return getFree(getTensorType(getLhs()).getRank(), getLhsBatching(),
                 getLhsContracting());
}

SmallVector<int64_t> DotGeneralOp::getRhsFree() {
  return getFree(getTensorType(getRhs()).getRank(), getRhsBatching(),
                 getRhsContracting());
}

static LogicalResult verifyDimensionNumbers(Operation *op, StringRef side,
                                            int64_t rank,
                                            ArrayRef<int64_t> batching,
                                            ArrayRef<int64_t> contracting) {
  llvm::SmallBitVector seen(rank);
  for (ArrayRef<int64_t> dims : {batching, contracting})
    for (int64_t dim : dims) {
      if (dim < 0 || dim >= rank)
        return op->emitOpError(side)
               << " dimension " << dim << " is out of range for rank " << rank;
      if (seen.test(dim))
        return op->emitOpError(side)
               << " dimension " << dim << " is used more than once";
      seen.set(dim);
    }
  return success();
}

static LogicalResult verifyPairs(Operation *op, StringRef what,
                                 RankedTensorType lhs, RankedTensorType rhs,
                                 ArrayRef<int64_t> lhsDims,
                                 ArrayRef<int64_t> rhsDims) {
  if (lhsDims.size() != rhsDims.size())
    return op->emitOpError("needs as many ")
           << what << " dimensions on the left as on the right, got "
           << lhsDims.size() << " and " << rhsDims.size();
  for (auto [left, right] : llvm::zip_equal(lhsDims, rhsDims))
    if (lhs.getDimSize(left) != rhs.getDimSize(right))
      return op->emitOpError()
             << what << " dimensions " << left << " and " << right
             << " must have equal sizes, got " << lhs.getDimSize(left)
             << " and " << rhs.getDimSize(right);
  return success();
}

LogicalResult DotGeneralOp::verify() {
  RankedTensorType lhs = getTensorType(getLhs()), rhs = getTensorType(getRhs());
  if (failed(verifyDimensionNumbers(*this, "lhs", lhs.getRank(),
                                    getLhsBatching(), getLhsContracting())) ||
      failed(verifyDimensionNumbers(*this, "rhs", rhs.getRank(),
                                    getRhsBatching(), getRhsContracting())) ||
      failed(verifyPairs(*this, "batching", lhs, rhs, getLhsBatching(),
                         getRhsBatching())) ||
      failed(verifyPairs(*this, "contracting", lhs, rhs, getLhsContracting(),
                         getRhsContracting())))
    return failure();
  if (lhs.getElementType() != rhs.getElementType())
    return emitOpError("operands must have the same element type, got ")
           << lhs.getElementType() << " and " << rhs.getElementType();

  SmallVector<int64_t> shape;
  for (int64_t dim : getLhsBatching())
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t dim : getLhsFree())
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t dim : getRhsFree())
    shape.push_back(rhs.getDimSize(dim));
  RankedTensorType result = getTensorType(getResult());
  if (lhs.getElementType().isBF16() && result.getElementType().isF32())
    return verifyResult(*this, getResult(), getResult(), shape);
  return verifyResult(*this, getLhs(), getResult(), shape);
}

//===----------------------------------------------------------------------===//
// Shape ops
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType operand = getTensorType(getOperand()),
                   result = getTensorType(getResult());
  ArrayRef<int64_t> dims = getDims();
  if (static_cast<int64_t>(dims.size()) != operand.getRank())
    return emitOpError("dims must have one entry per operand dimension, got ")
           << dims.size() << " for rank " << operand.getRank();
  if (failed(verifyAscending(*this, "dims", dims, result.getRank())))
    return failure();
  for (auto [index, dim] : llvm::enumerate(dims))
    if (operand.getDimSize(index) != result.getDimSize(dim))
      return emitOpError("result dimension ")
             << dim << " must have the size of operand dimension " << index
             << ", got " << result.getDimSize(dim) << " and "
             << operand.getDimSize(index);
  if (operand.getElementType() != result.getElementType())
    return emitOpError("operand and result must have the same element type, "
                       "got ")
           << operand.getElementType() << " and " << result.getElementType();
  return success();
}

LogicalResult ReduceOp::verify() {
  RankedTensorType operand = getTensorType(getOperand());
  if (failed(verifyAscending(*this, "dims", getDims(), operand.getRank())))
    return failure();
  SmallVector<int64_t> shape;
  for (int64_t dim : getFree(operand.getRank(), {}, getDims()))
    shape.push_back(operand.getDimSize(dim));
  return verifyResult(*this, getOperand(), getResult(), shape);
}

LogicalResult TransposeOp::verify() {
  RankedTensorType operand = getTensorType(getOperand());
  ArrayRef<int64_t> permutation = getPermutation();
  if (!isPermutation(permutation, operand.getRank()))
    return emitOpError("permutation must be one of the ")
           << operand.getRank() << " operand dimensions, got [" << permutation
           << "]";
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(operand.getDimSize(dim));
  return verifyResult(*this, getOperand(), getResult(), shape);
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType operand = getTensorType(getOperand()),
                   result = getTensorType(getResult());
  if (operand.getElementType() != result.getElementType() ||
      operand.getNumElements() != result.getNumElements())
    return emitOpError("must keep the number and type of the elements, got ")
           << operand << " to " << result;
  return success();
}

//===----------------------------------------------------------------------===//
// Slices, padding and concatenation
//===----------------------------------------------------------------------===//

/// `numbers` must have one entry per dimension of `operand`, none below
/// `lowest`.
static LogicalResult verifyNumbers(Operation *op, StringRef what,
                                   ArrayRef<int64_t> numbers, int64_t lowest,
                                   Value operand) {
  int64_t rank = getTensorType(operand).getRank();
  if (static_cast<int64_t>(numbers.size()) != rank)
    return op->emitOpError(what) << " must have one entry per dimension, got "
                                 << numbers.size() << " for rank " << rank;
  for (int64_t number : numbers)
    if (number < lowest)
      return op->emitOpError(what) << " must have entries of at least "
                                   << lowest << ", got " << number;
  return success();
}

/// `result` must have the rank and the element type of `operand`.
static LogicalResult verifySameRank(Operation *op, Value operand,
                                    Value result) {
  RankedTensorType from = getTensorType(operand), to = getTensorType(result);
  if (from.getRank() == to.getRank() &&
      from.getElementType() == to.getElementType())
    return success();
  return op->emitOpError("result must have the rank and the element type of "
                         "the operand, got ")
         << to << " for " << from;
}

/// `start` + i · `stride` must be below the sizes of `whole` for all elements i
/// of `part`.
static LogicalResult verifyPlaces(Operation *op, StringRef whole,
                                  RankedTensorType wholeType,
                                  RankedTensorType partType,
                                  ArrayRef<int64_t> starts,
                                  ArrayRef<int64_t> strides) {
  for (auto [dim, size] : llvm::enumerate(partType.getShape())) {
    int64_t last = size == 0 ? -1 : starts[dim] + (size - 1) * strides[dim];
    if (last >= wholeType.getDimSize(dim))
      return op->emitOpError("dimension ")
             << dim << " of the " << whole << " has no element " << last
             << ", its size is " << wholeType.getDimSize(dim);
  }
  return success();
}

LogicalResult ExtractSliceOp::verify() {
  RankedTensorType from = getTensorType(getOperand()),
                   to = getTensorType(getResult());
  if (failed(verifyNumbers(*this, "starts", getStarts(), 0, getOperand())) ||
      failed(verifyNumbers(*this, "strides", getStrides(), 1, getOperand())) ||
      failed(verifySameRank(*this, getOperand(), getResult())))
    return failure();
  return verifyPlaces(*this, "operand", from, to, getStarts(), getStrides());
}

bool ExtractSliceOp::isWhole(int64_t dim) {
  return getTensorType(getOperand()).getDimSize(dim) ==
             getTensorType(getResult()).getDimSize(dim) &&
         getStarts()[dim] == 0;
}

LogicalResult PadOp::verify() {
  RankedTensorType from = getTensorType(getOperand()),
                   to = getTensorType(getResult());
  if (failed(verifyNumbers(*this, "low", getLow(), 0, getOperand())) ||
      failed(
          verifyNumbers(*this, "interior", getInterior(), 0, getOperand())) ||
      failed(verifySameRank(*this, getOperand(), getResult())))
    return failure();
  SmallVector<int64_t> strides(getInterior());
  for (int64_t &stride : strides)
    ++stride;
  return verifyPlaces(*this, "result", to, from, getLow(), strides);
}

bool PadOp::isWhole(int64_t dim) {
  return getTensorType(getOperand()).getDimSize(dim) ==
             getTensorType(getResult()).getDimSize(dim) &&
         getLow()[dim] == 0;
}

LogicalResult ConcatenateOp::verify() {
  RankedTensorType type = getTensorType(getResult());
  int64_t dim = static_cast<int64_t>(getDim());
  if (getOperands().empty())
    return emitOpError("needs at least one operand");
  if (dim < 0 || dim >= type.getRank())
    return emitOpError("dim ")
           << dim << " is out of range for rank " << type.getRank();
  int64_t total = 0;
  for (Value operand : getOperands()) {
    RankedTensorType from = getTensorType(operand);
    if (from.getRank() == type.getRank()) {
      total += from.getDimSize(dim);
      SmallVector<int64_t> shape(type.getShape());
      shape[dim] = from.getDimSize(dim);
      if (from == type.clone(shape))
        continue;
    }
    return emitOpError("operands must have the type of the result but for "
                       "dimension ")
           << dim << ", got " << from << " for " << type;
  }
  if (total != type.getDimSize(dim))
    return emitOpError("dimension ")
           << dim << " of the result must have size " << total
           << ", the sum of those of the operands, got "
           << type.getDimSize(dim);
  return success();
}

LogicalResult PermuteRowsOp::verify() {
  RankedTensorType type = getTensorType(getResult());
  int64_t dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= type.getRank())
    return emitOpError("dim ")
           << dim << " is out of range for rank " << type.getRank();
  int64_t rows = type.getDimSize(dim);
  if (isPermutation(getSources(), rows))
    return success();
  return emitOpError("sources must be a permutation of the ")
         << rows << " rows, got [" << getSources() << "]";
}

//===----------------------------------------------------------------------===//
// Ops without tensor operands
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

/// Checks `microbatch`, two positive numbers if it is there.
static LogicalResult
verifyMicrobatch(Operation *op, std::optional<ArrayRef<int64_t>> numbers) {
  if (!numbers || (numbers->size() == 2 &&
                   llvm::all_of(*numbers, [](int64_t n) { return n >= 1; })))
    return success();
  return op->emitOpError("microbatch must be [count, rows], two positive "
                         "numbers, got [")
         << *numbers << "]";
}

LogicalResult IotaOp::verify() {
  RankedTensorType type = getTensorType(getResult());
  int64_t dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= type.getRank())
    return emitOpError("dim ")
           << dim << " is out of range for rank " << type.getRank();
  if (getShard() && getShard()->getRank() != type.getRank())
    return emitOpError("shard must have the rank of the result, got ")
           << getShard()->getRank() << " for rank " << type.getRank();
  return verifyMicrobatch(*this, getMicrobatch());
}

LogicalResult RandomUniformOp::verify() {
  RankedTensorType type = getTensorType(getResult());
  if (getTensorType(getStep()).getRank() != 0)
    return emitOpError("step must be a scalar, got ") << getStep().getType();
  if (getShard().has_value() != getGlobalShape().has_value())
    return emitOpError("shard and global_shape must be given together");
  if (failed(verifyMicrobatch(*this, getMicrobatch())))
    return failure();
  int64_t rank = type.getRank();
  if (getMicrobatch() && rank == 0)
    return emitOpError("a scalar has no rows of a microbatch");
  if (!getShard())
    return success();
  int64_t shapeRank = getGlobalShape()->size();
  if (getShard()->getRank() != rank || shapeRank != rank)
    return emitOpError(
               "shard and global_shape must have the rank of the result, got ")
           << getShard()->getRank() << " and " << shapeRank << " for rank "
           << rank;
  return success();
}

LogicalResult MaskOp::verify() {
  RankedTensorType type = getTensorType(getResult());
  int64_t rank = type.getRank();
  int64_t shapeRank = getGlobalShape().size();
  if (getShard().getRank() != rank || shapeRank != rank)
    return emitOpError(
               "shard and global_shape must have the rank of the operand, got ")
           << getShard().getRank() << " and " << shapeRank << " for rank "
           << rank;
  MeshOp mesh = lookupMesh(*this, getShard().getMesh());
  if (!mesh)
    return emitOpError("names mesh ")
           << getShard().getMesh() << ", but the module has none of that name";
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t shards = mesh.getNumShards(getShard().getAxes(dim));
    int64_t global = getGlobalShape()[dim];
    if (shards == 0)
      return emitOpError("shard uses an axis that mesh ")
             << getShard().getMesh() << " lacks";
    int64_t expected = (global + shards - 1) / shards;
    if (type.getDimSize(dim) != expected)
      return emitOpError("dimension ")
             << dim << " must have size " << expected << ", the shard of "
             << global << " over " << shards << " devices, got "
             << type.getDimSize(dim);
  }
  return verifyAscending(*this, "dims", getDims(), rank);
}
