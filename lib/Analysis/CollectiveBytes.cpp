//===- CollectiveBytes.cpp - Bytes that ops move --------------------------===//

#include "shardc/Analysis/CollectiveBytes.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"
#include "shardc/Sharding/Layout.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

int64_t shardc::getElementBytes(Type elementType) {
  return ceilDiv(elementType.getIntOrFloatBitWidth(), 8);
}

static int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * getElementBytes(type.getElementType());
}

static int64_t getBytes(ValueRange values) {
  int64_t bytes = 0;
  for (Value value : values)
    bytes += getBytes(value);
  return bytes;
}

static int64_t getGroupSize(Operation *op, FlatSymbolRefAttr meshName,
                            ArrayAttr axes) {
  MeshOp mesh = lookupMesh(op, meshName);
  int64_t devices = 1;
  for (auto axis : axes.getAsRange<StringAttr>())
    devices *= mesh.getAxisSize(axis.getValue());
  return devices;
}

SmallVector<StringAttr> shardc::getMovedAxes(Operation *op) {
  SmallVector<StringAttr> names;
  if (auto axes = op->getAttrOfType<ArrayAttr>("axes"))
    llvm::append_range(names, axes.getAsRange<StringAttr>());
  if (isa<TransferOp, SendOp>(op))
    if (auto pipeline =
            op->getParentOfType<ModuleOp>()->getAttrOfType<PipelineAttr>(
                pipelineAttrName))
      names.push_back(pipeline.getAxis());
  return names;
}

std::optional<CollectiveCost> shardc::getCollectiveCost(Operation *op) {
  auto cost = [&](CollectiveKind kind, int64_t groupSize,
                  int64_t bytes) -> std::optional<CollectiveCost> {
    return CollectiveCost{kind, groupSize, bytes,
                          getWireBytes(kind, bytes, groupSize)};
  };
  return llvm::TypeSwitch<Operation *, std::optional<CollectiveCost>>(op)
      .Case([&](AllReduceOp reduce) {
        return cost(CollectiveKind::AllReduce,
                    getGroupSize(op, reduce.getMeshAttr(), reduce.getAxes()),
                    getBytes(reduce.getOperands()));
      })
      .Case([&](AllGatherOp gather) {
        int64_t n = getGroupSize(op, gather.getMeshAttr(), gather.getAxes());
        return cost(CollectiveKind::AllGather, n,
                    n * getBytes(gather.getOperands()));
      })
      .Case([&](ReduceScatterOp scatter) {
        int64_t n = getGroupSize(op, scatter.getMeshAttr(), scatter.getAxes());
        return cost(CollectiveKind::ReduceScatter, n,
                    n * getBytes(scatter.getResults()));
      })
      .Case([&](AllToAllOp exchange) {
        // The operand, its split dimension padded to n equal parts.
        int64_t n =
            getGroupSize(op, exchange.getMeshAttr(), exchange.getAxes());
        auto type = cast<RankedTensorType>(exchange.getOperand().getType());
        int64_t split = type.getDimSize(exchange.getSplitDim());
        int64_t bytes = getBytes(exchange.getOperand());
        if (split > 0)
          bytes = bytes / split * (n * ceilDiv(split, n));
        return cost(CollectiveKind::AllToAll, n, bytes);
      })
      .Case([&](CollectivePermuteOp permute) {
        return cost(CollectiveKind::CollectivePermute,
                    getGroupSize(op, permute.getMeshAttr(), permute.getAxes()),
                    getBytes(permute.getOperand()));
      })
      .Case([&](TransferOp transfer) {
        return cost(CollectiveKind::Send, /*groupSize=*/2,
                    getBytes(transfer.getOperand()));
      })
      .Case([&](SendOp send) {
        return cost(CollectiveKind::Send, /*groupSize=*/2,
                    getBytes(send.getOperands()));
      })
      .Default([](Operation *) { return std::nullopt; });
}
