//===- Liveness.cpp - When values of a schedule are alive -----------------===//

#include "shardc/Analysis/Liveness.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace shardc {

Liveness::Liveness(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    steps[&op] = steps.size();
}

int64_t Liveness::getFirst(Value value) const {
  Operation *op = value.getDefiningOp();
  return op ? getStep(op) : -1;
}

int64_t Liveness::getLast(Value value) const {
  int64_t last = getFirst(value);
  for (Operation *user : value.getUsers())
    last = std::max(last, getStep(user));
  return last;
}

int64_t getNumBytes(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

} // namespace shardc
