//===- Liveness.cpp - Lifetimes of the values of a schedule ---------------===//

#include "shardc/Analysis/Liveness.h"

#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;

namespace shardc {

Liveness::Liveness(func::FuncOp function) {
  for (Operation &op : function.getBody().front()) {
    steps[&op] = steps.size();
    if (auto loop = dyn_cast<AccumulateOp>(op))
      for (Operation &inner : loop.getBody().front())
        steps[&inner] = steps.size();
  }
}

int64_t Liveness::getEnd(Operation *op) const {
  if (auto loop = dyn_cast<AccumulateOp>(op))
    return getStep(loop.getYield());
  if (auto start = dyn_cast<CollectiveStartOp>(op))
    return getStep(start.getWait());
  return getStep(op);
}

int64_t Liveness::getFirst(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = dyn_cast<AccumulateOp>(value.getParentBlock()->getParentOp());
  if (auto wait = dyn_cast_or_null<CollectiveWaitOp>(op))
    op = wait.getStart();
  return op ? getStep(op) : -1;
}

int64_t Liveness::getLast(Value value) const {
  Operation *op = value.getDefiningOp();
  int64_t last = op ? getEnd(op) : getFirst(value);
  for (Operation *user : value.getUsers())
    last = std::max(last, getEnd(getUserInBlock(value, user)));
  return last;
}

int64_t getNumBytes(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

} // namespace shardc
