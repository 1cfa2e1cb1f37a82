//===- MemoryTraffic.cpp - Memory traffic of ops --------------------------===//

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

/// The part of the step that `op` belongs to; null if it is unknown. Inside a
/// kernel it is the kernel's.
static Attribute getPart(Operation *op) {
  if (auto kernel = op->getParentOfType<KernelOp>())
    op = kernel;
  return op->getAttr(partAttrName);
}

static bool isGemm(Operation *op) {
  return isa_and_nonnull<DotGeneralOp, GemmOp>(op);
}

/// Whether `op` itself loads nothing: it encloses ops, or moves values.
static bool isTransparent(Operation *op) {
  return op->getNumRegions() > 0 ||
         isa<YieldOp, CollectiveWaitOp, ShardingConstraintOp>(op) ||
         getCollectiveCost(op);
}

MemoryTraffic::MemoryTraffic(func::FuncOp function) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { addAliases(op); });
  for (BlockArgument argument : function.getArguments())
    stored.insert(argument);
  function.walk([&](Operation *op) { addStores(op); });
  function.walk([&](Operation *op) { addLoads(op); });
}

Value MemoryTraffic::resolve(Value value) const {
  for (auto it = aliases.find(value); it != aliases.end();
       it = aliases.find(value))
    value = it->second;
  return value;
}

void MemoryTraffic::addAliases(Operation *op) {
  if (isa<func::FuncOp>(op))
    return;
  if (op->getNumRegions() > 0) {
    Block &body = op->getRegion(0).front();
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), op->getOperands()))
      aliases[argument] = operand;
    for (auto [result, yielded] :
         llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
      aliases[result] = yielded;
  } else if (auto wait = dyn_cast<CollectiveWaitOp>(op)) {
    Block &body = wait.getStart().getBody().front();
    for (auto [result, yielded] : llvm::zip_equal(
             wait.getResults(), body.getTerminator()->getOperands()))
      aliases[result] = yielded;
  } else if (getCollectiveCost(op) || isa<ShardingConstraintOp>(op)) {
    for (auto [result, operand] :
         llvm::zip_equal(op->getResults(), op->getOperands()))
      aliases[result] = operand;
  }
}

void MemoryTraffic::addStores(Operation *op) {
  if (isTransparent(op))
    return;
  for (Value operand : op->getOperands()) {
    Value value = resolve(operand);
    Operation *producer = value.getDefiningOp();
    if (isGemm(op) || isa<func::ReturnOp>(op) ||
        (producer && getPart(producer) != getPart(op)))
      stored.insert(value);
  }
  if (isGemm(op))
    stored.insert(op->getResult(0));
}

void MemoryTraffic::addLoads(Operation *op) {
  if (isTransparent(op))
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = resolve(operand.get());
    Operation *producer = value.getDefiningOp();
    if (!stored.contains(value))
      continue;
    if (!isGemm(op)) {
      bool isFused =
          producer && !isGemm(producer) && getPart(producer) == getPart(op);
      if (isFused || !readInPart.insert({value, getPart(op)}).second)
        continue;
    }
    loaded.insert(&operand);
  }
}
