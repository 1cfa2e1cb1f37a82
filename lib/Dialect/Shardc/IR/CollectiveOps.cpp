//===- CollectiveOps.cpp - Verifiers of the collectives -------------------===//
//
// Each verifier checks the numbered constraints of its op in
// ShardcCollectiveOps.td. A dimension of size s, scattered over n devices, is
// ceil(s/n) on each.
//
//===----------------------------------------------------------------------===//

#include "shardc/Dialect/Shardc/IR/Permutations.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace shardc;

/// C1 of all collectives; returns the number of devices in a group.
static FailureOr<int64_t> verifyAxes(Operation *op, FlatSymbolRefAttr meshName,
                                     ArrayAttr axes) {
  MeshOp mesh = lookupMesh(op, meshName);
  if (!mesh)
    return op->emitOpError("names mesh ")
           << meshName << ", but the module has none of that name";
  if (axes.empty())
    return op->emitOpError("needs at least one mesh axis");
  int64_t devices = 1;
  llvm::StringSet<> seen;
  for (auto axis : axes.getAsRange<StringAttr>()) {
    int64_t size = mesh.getAxisSize(axis.getValue());
    if (size == 0)
      return op->emitOpError("uses axis ")
             << axis << ", which mesh " << meshName << " lacks";
    if (!seen.insert(axis.getValue()).second)
      return op->emitOpError("uses axis ") << axis << " twice";
    devices *= size;
  }
  return devices;
}

static LogicalResult verifyDim(Operation *op, StringRef what, int64_t dim,
                               RankedTensorType type) {
  if (dim >= 0 && dim < type.getRank())
    return success();
  return op->emitOpError(what)
         << " " << dim << " is out of range for rank " << type.getRank();
}

/// `scattered` must be `gathered` with ceil(size/devices) in dimension `dim`.
static LogicalResult verifyShard(Operation *op, RankedTensorType gathered,
                                 RankedTensorType scattered, int64_t dim,
                                 int64_t devices) {
  SmallVector<int64_t> shape(gathered.getShape());
  shape[dim] = (shape[dim] + devices - 1) / devices;
  auto expected = RankedTensorType::get(shape, gathered.getElementType());
  if (scattered == expected)
    return success();
  return op->emitOpError("the shard of ")
         << gathered << " in dimension " << dim << " over " << devices
         << " devices must be " << expected << ", got " << scattered;
}

/// One result per operand, at least one.
static LogicalResult verifyCounts(Operation *op) {
  if (op->getNumOperands() == op->getNumResults() && op->getNumOperands() > 0)
    return success();
  return op->emitOpError("needs one result per operand and at least one, got ")
         << op->getNumOperands() << " operands and " << op->getNumResults()
         << " results";
}

/// C2 and C3 of all_gather and reduce_scatter.
static LogicalResult verifyShards(Operation *op, ValueRange gathered,
                                  ValueRange scattered, ArrayRef<int64_t> dims,
                                  int64_t devices) {
  if (dims.size() != gathered.size())
    return op->emitOpError("dims must have one entry per operand, got ")
           << dims.size() << " for " << gathered.size();
  for (auto [full, shard, dim] : llvm::zip_equal(gathered, scattered, dims))
    if (failed(verifyDim(op, "dims entry", dim, getTensorType(full))) ||
        failed(verifyShard(op, getTensorType(full), getTensorType(shard), dim,
                           devices)))
      return failure();
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyAxes(*this, getMeshAttr(), getAxes())) ||
      failed(verifyCounts(*this)))
    return failure();
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults()))
    if (operand.getType() != result.getType())
      return emitOpError("results must have the types of the operands, got ")
             << result.getType() << " for " << operand.getType();
  return success();
}

LogicalResult AllGatherOp::verify() {
  FailureOr<int64_t> devices = verifyAxes(*this, getMeshAttr(), getAxes());
  if (failed(devices) || failed(verifyCounts(*this)))
    return failure();
  return verifyShards(*this, getResults(), getOperands(), getDims(), *devices);
}

LogicalResult ReduceScatterOp::verify() {
  FailureOr<int64_t> devices = verifyAxes(*this, getMeshAttr(), getAxes());
  if (failed(devices) || failed(verifyCounts(*this)))
    return failure();
  return verifyShards(*this, getOperands(), getResults(), getDims(), *devices);
}

LogicalResult AllToAllOp::verify() {
  FailureOr<int64_t> devices = verifyAxes(*this, getMeshAttr(), getAxes());
  if (failed(devices))
    return failure();
  RankedTensorType operand = getTensorType(getOperand()),
                   result = getTensorType(getResult());
  int64_t split = getSplitDim(), concat = getConcatDim();
  if (failed(verifyDim(*this, "split_dim", split, operand)) ||
      failed(verifyDim(*this, "concat_dim", concat, operand)))
    return failure();
  if (split == concat)
    return emitOpError("split_dim and concat_dim must differ, both are ")
           << split;
  auto ceilDiv = [&](int64_t size) { return (size + *devices - 1) / *devices; };
  bool legal = operand.getElementType() == result.getElementType() &&
               operand.getRank() == result.getRank();
  for (int64_t dim = 0; legal && dim < operand.getRank(); ++dim) {
    int64_t before = operand.getDimSize(dim), after = result.getDimSize(dim);
    if (dim == split)
      legal = after == ceilDiv(before);
    else if (dim == concat)
      legal = before == ceilDiv(after);
    else
      legal = before == after;
  }
  if (legal)
    return success();
  return emitOpError("dimension ")
         << split << " must shrink to its shard over " << *devices
         << " devices, dimension " << concat
         << " grow from its own, and the others stay, got " << operand << " to "
         << result;
}

LogicalResult CollectivePermuteOp::verify() {
  FailureOr<int64_t> devices = verifyAxes(*this, getMeshAttr(), getAxes());
  if (failed(devices))
    return failure();
  auto byName = [](Attribute lhs, Attribute rhs) {
    return cast<StringAttr>(lhs).getValue() < cast<StringAttr>(rhs).getValue();
  };
  SmallVector<Attribute> from(getAxes().getValue());
  SmallVector<Attribute> to(getTargetAxes().getValue());
  llvm::sort(from, byName);
  llvm::sort(to, byName);
  if (from != to)
    return emitOpError("target axes must be a permutation of the axes, got ")
           << getTargetAxes() << " for " << getAxes();
  std::optional<ArrayRef<int64_t>> sources = getSources();
  if (sources && !isPermutation(*sources, *devices))
    return emitOpError("sources must be a permutation of the ")
           << *devices << " members, got [" << *sources << "]";
  return success();
}

LogicalResult SliceOp::verify() {
  FailureOr<int64_t> devices = verifyAxes(*this, getMeshAttr(), getAxes());
  if (failed(devices))
    return failure();
  RankedTensorType operand = getTensorType(getOperand());
  int64_t dim = getDim();
  if (failed(verifyDim(*this, "dim", dim, operand)))
    return failure();
  return verifyShard(*this, operand, getTensorType(getResult()), dim, *devices);
}

LogicalResult CollectiveStartOp::verify() {
  Block &body = getBody().front();
  if (body.getArgumentTypes() != getOperandTypes())
    return emitOpError("body's arguments must have the types of the operands, "
                       "got (")
           << body.getArgumentTypes() << ") for (" << getOperandTypes() << ")";
  Operation *collective = getCollective();
  if (!isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp,
           CollectivePermuteOp, SendOp, ReceiveOp>(collective) ||
      !llvm::equal(collective->getOperands(), body.getArguments()) ||
      collective->getNextNode() != body.getTerminator() ||
      !llvm::equal(body.getTerminator()->getOperands(),
                   collective->getResults()))
    return emitOpError("body must be one collective, send or receive on all "
                       "its arguments and a "
                       "yield of all its results");
  if (!getHandle().hasOneUse() ||
      !isa<CollectiveWaitOp>(*getHandle().user_begin()))
    return emitOpError("needs one shardc.collective_wait for its handle");
  return success();
}

CollectiveWaitOp CollectiveStartOp::getWait() {
  return cast<CollectiveWaitOp>(*getHandle().user_begin());
}

LogicalResult CollectiveWaitOp::verify() {
  CollectiveStartOp start = getStart();
  if (!start)
    return emitOpError("needs the handle of a shardc.collective_start");
  TypeRange types = start.getBody().front().getTerminator()->getOperandTypes();
  if (types != getResultTypes())
    return emitOpError("results must have the types of what was started, got (")
           << getResultTypes() << ") for (" << types << ")";
  return success();
}
