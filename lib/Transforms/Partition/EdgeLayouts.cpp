//===- EdgeLayouts.cpp - Layouts at both ends of each edge ----------------===//

#include "EdgeLayouts.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

LogicalResult EdgeLayouts::collect() {
  if (failed(collectArguments()))
    return failure();
  return collect(function.getBody().front());
}

LogicalResult EdgeLayouts::collectArguments() {
  for (BlockArgument argument : function.getArguments()) {
    auto sharding = function.getArgAttrOfType<ShardingAttr>(
        argument.getArgNumber(), shardingAttrName);
    if (!sharding)
      return emitError(argument.getLoc(), "argument ")
             << argument.getArgNumber()
             << " has no `shardc.sharding`; run shardc-propagate first";
    produced[argument] = getLayout(sharding, mesh);
  }
  return success();
}

LogicalResult EdgeLayouts::collect(Block &block) {
  for (Operation &op : block) {
    order[&op] = order.size();
    // A sum over microbatches has the layout of its summands.
    if (isa<YieldOp>(op))
      continue;
    if (isa<func::ReturnOp>(op)) {
      for (OpOperand &operand : op.getOpOperands()) {
        auto sharding = function.getResultAttrOfType<ShardingAttr>(
            operand.getOperandNumber(), shardingAttrName);
        if (!sharding)
          return function.emitOpError("result ")
                 << operand.getOperandNumber()
                 << " has no `shardc.sharding`; run shardc-propagate first";
        addConsumer(operand, getLayout(sharding, mesh));
      }
      continue;
    }
    FailureOr<OpLayouts> layouts = OpLayouts::get(&op, mesh);
    if (failed(layouts))
      return failure();
    for (auto [operand, layout] :
         llvm::zip_equal(op.getOpOperands(), layouts->operands))
      addConsumer(operand, layout);
    if (auto loop = dyn_cast<AccumulateOp>(op)) {
      if (failed(collectBody(loop, *layouts)))
        return failure();
      continue;
    }
    for (auto [result, layout] :
         llvm::zip_equal(op.getResults(), layouts->results))
      produced[result] = layout;
  }
  return success();
}

LogicalResult EdgeLayouts::collectBody(AccumulateOp loop,
                                       const OpLayouts &layouts) {
  for (auto [slice, layout] :
       llvm::zip_equal(loop.getSlices(), layouts.results))
    produced[slice] = layout;
  if (failed(collect(loop.getBody().front())))
    return failure();
  for (auto [result, summand] :
       llvm::zip_equal(loop.getResults(), loop.getYield().getOperands())) {
    Layout layout = getProduced(summand);
    produced[result] = layout;
  }
  return success();
}

void EdgeLayouts::addConsumer(OpOperand &use, const Layout &layout) {
  SmallVector<Consumer, 1> &list = consumers[use.get()];
  auto it = llvm::find_if(list, [&](const Consumer &consumer) {
    return consumer.layout == layout;
  });
  if (it == list.end()) {
    list.push_back({layout, {}});
    it = std::prev(list.end());
  }
  it->uses.push_back(&use);
}
