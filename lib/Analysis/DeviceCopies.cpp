//===- DeviceCopies.cpp - Axes along which values differ ------------------===//

#include "shardc/Analysis/DeviceCopies.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;

namespace shardc {

DeviceCopies::DeviceCopies(func::FuncOp function)
    : mesh(getMeshAxes(*getMesh(function->getParentOfType<ModuleOp>()))) {
  for (BlockArgument argument : function.getArguments()) {
    auto sharding = function.getArgAttrOfType<ShardingAttr>(
        argument.getArgNumber(), shardingAttrName);
    for (int64_t dim = 0; sharding && dim < sharding.getRank(); ++dim)
      axesOf[argument] |= getSet(sharding.getAxes(dim));
  }
  SmallVector<Block *> blocks = getBlocks(function);
  // What is behind a loop depends on its body, which comes later.
  bool changes;
  do {
    changes = false;
    for (Block *block : blocks)
      for (Operation &op : *block)
        changes |= propagate(&op);
  } while (changes && blocks.size() > 1);
}

AxisSet DeviceCopies::getSet(ArrayRef<StringAttr> names) const {
  AxisSet set = 0;
  for (StringAttr name : names)
    if (int number = mesh.find(name.getValue());
        number >= 0 && mesh.getSize(number) > 1)
      set |= axisBit(number);
  return set;
}

int64_t DeviceCopies::getCount(AxisSet axes) const {
  int64_t count = 1;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    if (axes & axisBit(axis))
      count *= mesh.getSize(axis);
  return count;
}

AxisSet DeviceCopies::getCoordinates(Operation *op) const {
  AxisSet axes = 0;
  if (auto slice = dyn_cast<SliceOp>(op)) {
    for (Attribute axis : slice.getAxes())
      axes |= getSet(cast<StringAttr>(axis));
    return axes;
  }
  if (auto mask = dyn_cast<MaskOp>(op)) {
    for (int64_t dim : mask.getDims())
      axes |= getSet(mask.getShard().getAxes(dim));
    return axes;
  }
  for (NamedAttribute attribute : op->getAttrs())
    if (auto shard = dyn_cast<ShardingAttr>(attribute.getValue()))
      for (int64_t dim = 0; dim < shard.getRank(); ++dim)
        axes |= getSet(shard.getAxes(dim));
  return axes;
}

bool DeviceCopies::widen(Value value, AxisSet axes) {
  AxisSet &known = axesOf[value];
  const AxisSet before = known;
  known |= axes;
  return known != before;
}

bool DeviceCopies::propagate(Operation *op) {
  bool changes = false;
  auto widenAll = [&](ValueRange values, ValueRange from) {
    for (auto [value, source] : llvm::zip(values, from))
      changes |= widen(value, getAxes(source));
  };
  if (auto start = dyn_cast<CollectiveStartOp>(op)) {
    Block &body = start.getBody().front();
    widenAll(body.getArguments(), start.getOperands());
    for (Operation &inner : body.without_terminator())
      changes |= propagate(&inner);
    return changes;
  }
  if (auto wait = dyn_cast<CollectiveWaitOp>(op)) {
    Block &body = wait.getStart().getBody().front();
    widenAll(wait.getResults(), body.getTerminator()->getOperands());
    return changes;
  }
  if (auto loop = dyn_cast<AccumulateOp>(op)) {
    Block &body = loop.getBody().front();
    auto arguments = body.getArguments();
    widenAll(arguments, loop.getOperands());
    widenAll(loop.getResults(), body.getTerminator()->getOperands());
    widenAll(arguments.drop_front(loop.getOperands().size()),
             loop.getResults());
    return changes;
  }
  if (isa<ReceiveOp>(op)) {
    for (Value result : op->getResults())
      changes |= widen(result, ~AxisSet(0));
    return changes;
  }
  if (getCollectiveCost(op)) {
    const AxisSet over = getSet(getMovedAxes(op));
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults()))
      changes |= widen(result, isa<AllReduceOp, AllGatherOp>(op)
                                   ? getAxes(operand) & ~over
                                   : getAxes(operand) | over);
    return changes;
  }
  AxisSet axes = 0;
  for (Value operand : op->getOperands())
    axes |= getAxes(operand);
  op->walk([&](Operation *inner) { axes |= getCoordinates(inner); });
  for (Value result : op->getResults())
    changes |= widen(result, axes);
  return changes;
}

} // namespace shardc
