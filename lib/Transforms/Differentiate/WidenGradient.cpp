//===- WidenGradient.cpp - Gradients before they are rounded --------------===//

#include "WidenGradient.h"

#include "shardc/Dialect/Shardc/IR/Builders.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shardc;

Value shardc::widenGradient(OpBuilder &builder, Value gradient, Type element) {
  if (getElementTypeOrSelf(gradient) == element)
    return gradient;
  Operation *op = gradient.getDefiningOp();
  // Clones the op with `operands` and a result of the wider type.
  auto rebuild = [&](ValueRange operands) {
    Operation *wide = builder.clone(*op);
    wide->setOperands(operands);
    Value result = wide->getResult(0);
    result.setType(cast<RankedTensorType>(gradient.getType()).clone(element));
    return result;
  };
  auto widenFirst = [&](Operation *op) {
    return rebuild(widenGradient(builder, op->getOperand(0), element));
  };
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](DotGeneralOp) {
        // Only GEMMs of bf16 can return their sums, which are f32, unrounded.
        return getElementTypeOrSelf(gradient).isBF16() && element.isF32()
                   ? rebuild(op->getOperands())
                   : convertTo(builder, op->getLoc(), gradient, element);
      })
      .Case([&](ReduceOp reduce) {
        return reduce.getKind() == ReductionKind::Sum
                   ? widenFirst(op)
                   : convertTo(builder, op->getLoc(), gradient, element);
      })
      .Case<TransposeOp, ReshapeOp, ExtractSliceOp, PadOp, PermuteRowsOp,
            ShardingConstraintOp>(widenFirst)
      .Default([&](Operation *) {
        return convertTo(builder, gradient.getLoc(), gradient, element);
      });
}
