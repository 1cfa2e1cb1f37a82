//===- Liveness.cpp - When values of a schedule are alive -----------------===//

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
  auto loop = dyn_cast<AccumulateOp>(op);
  return getStep(loop ? loop.getYield() : op);
}

int64_t Liveness::getFirst(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    op = dyn_cast<AccumulateOp>(value.getParentBlock()->getParentOp());
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
