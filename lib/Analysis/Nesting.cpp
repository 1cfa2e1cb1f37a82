//===- Nesting.cpp - Blocks of functions with loops -----------------------===//

#include "shardc/Analysis/Nesting.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;
using namespace shardc;

SmallVector<Block *> shardc::getBlocks(func::FuncOp function) {
  Block &outer = function.getBody().front();
  SmallVector<Block *> blocks = {&outer};
  for (auto loop : outer.getOps<AccumulateOp>())
    blocks.push_back(&loop.getBody().front());
  return blocks;
}

SmallVector<Value> shardc::getUsedValues(Operation *op) {
  SmallVector<Value> values;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (operand.getParentBlock() == op->getBlock())
        values.push_back(operand);
  });
  return values;
}

Operation *shardc::getUserInBlock(Value value, Operation *user) {
  return value.getParentBlock()->findAncestorOpInBlock(*user);
}

Operation *shardc::getComputingOp(Value value) {
  if (auto loop = value.getDefiningOp<AccumulateOp>()) {
    unsigned result = cast<OpResult>(value).getResultNumber();
    return loop.getYield().getOperand(result).getDefiningOp();
  }
  return value.getDefiningOp();
}

int64_t shardc::getNumRuns(Operation *op) {
  auto loop = op->getParentOfType<AccumulateOp>();
  return loop ? loop.getCount() : 1;
}
