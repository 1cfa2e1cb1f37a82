//===- MemoryValues.cpp - Which values lie in memory ----------------------===//

#include "shardc/Analysis/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

/// The part of the step that `op` belongs to; null if it is unknown. Inside a
/// kernel it is the kernel's.
static Attribute getPart(Operation *op) {
  if (auto kernel = op->getParentOfType<KernelOp>())
    op = kernel;
  return op->getAttr("shardc.part");
}

MemoryValues::MemoryValues(func::FuncOp function) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { addAliases(op); });
  for (BlockArgument argument : function.getArguments())
    values.insert(argument);
  function.walk([&](Operation *op) { addUses(op); });
}

Value MemoryValues::resolve(Value value) const {
  for (auto it = aliases.find(value); it != aliases.end();
       it = aliases.find(value))
    value = it->second;
  return value;
}

void MemoryValues::addAliases(Operation *op) {
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
  } else if (getCollectiveCost(op)) {
    for (auto [result, operand] :
         llvm::zip_equal(op->getResults(), op->getOperands()))
      aliases[result] = operand;
  }
}

void MemoryValues::addUses(Operation *op) {
  if (op->getNumRegions() > 0 || isa<YieldOp>(op) || getCollectiveCost(op))
    return;
  bool isProduct = isa<DotGeneralOp, GemmOp>(op);
  for (Value operand : op->getOperands()) {
    Value value = resolve(operand);
    Operation *producer = value.getDefiningOp();
    if (isProduct || isa<func::ReturnOp>(op) ||
        (producer && getPart(producer) != getPart(op)))
      values.insert(value);
  }
  if (isProduct)
    values.insert(op->getResult(0));
}
