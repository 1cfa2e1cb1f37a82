//===- ShardingOps.cpp - Verifiers of sharding_constraint and reshard -----===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

using namespace mlir;
using namespace shardc;

LogicalResult ShardingConstraintOp::verify() {
  if (getSharding().has_value() == getLogicalAxes().has_value())
    return emitOpError("needs exactly one of sharding and logical_axes");
  auto type = cast<RankedTensorType>(getResult().getType());
  int64_t entries =
      getSharding() ? getSharding()->getRank() : getLogicalAxes()->size();
  if (entries != type.getRank())
    return emitOpError("needs one entry per dimension of the operand, got ")
           << entries << " for rank " << type.getRank();
  if (!getSharding())
    return success();
  return verifySharding(*getSharding(), type, *this,
                        [&] { return emitOpError("sharding "); });
}

LogicalResult ReshardOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (failed(verifySharding(
          getFrom(), type, *this, [&] { return emitOpError("`from` "); },
          /*allowGaps=*/true)) ||
      failed(verifySharding(
          getTo(), type, *this, [&] { return emitOpError("`to` "); },
          /*allowGaps=*/true)))
    return failure();
  for (StringAttr axis : getTo().getUnreduced())
    if (!llvm::is_contained(getFrom().getUnreduced(), axis))
      return emitOpError("axis ")
             << axis << " is unreduced in `to` but not in `from`";
  return success();
}
