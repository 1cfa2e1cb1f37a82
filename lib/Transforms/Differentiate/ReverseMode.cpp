//===- ReverseMode.cpp - Gradients of a block's result --------------------===//
//
// Ops are visited from the last to the first, each asked for the gradients of
// its operands (DifferentiableOpInterface) once those of its results are known.
//
// A parameter that is used in a narrower type has its gradient in its own: that
// of the conversion's result is added up, in a product, over uses and later
// over devices and microbatches, before it would have been rounded.
//
//===----------------------------------------------------------------------===//

#include "ReverseMode.h"
#include "WidenGradient.h"

#include "shardc/Dialect/Shardc/IR/Builders.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace shardc;

/// The values that depend on a parameter and through which a gradient flows.
static DenseSet<Value> findActive(Block &block, ValueRange parameters) {
  DenseSet<Value> active(parameters.begin(), parameters.end());
  for (Operation &op : block) {
    if (isa<StopGradientOp>(op) ||
        llvm::none_of(op.getOperands(),
                      [&](Value operand) { return active.contains(operand); }))
      continue;
    for (Value result : op.getResults())
      if (isa<FloatType>(getElementTypeOrSelf(result)))
        active.insert(result);
  }
  return active;
}

/// The element type of the gradient of `value`: its own, or that of the
/// parameter of which `value` is a narrower copy.
static Type getGradientElement(Value value, ValueRange parameters) {
  Type element = getElementTypeOrSelf(value);
  auto copy = value.getDefiningOp<ConvertOp>();
  if (!copy)
    return element;
  Value source = copy.getOperand();
  while (auto constraint = source.getDefiningOp<ShardingConstraintOp>())
    source = constraint.getOperand();
  Type wide = getElementTypeOrSelf(source);
  bool isNarrower =
      wide.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth();
  return isNarrower && llvm::is_contained(parameters, source) ? wide : element;
}

FailureOr<SmallVector<Value>>
shardc::buildGradients(OpBuilder &builder, Value loss, ValueRange parameters) {
  Block &block = *builder.getInsertionBlock();
  DenseSet<Value> active = findActive(block, parameters);

  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);

  DenseMap<Value, Value> gradients;
  if (active.contains(loss))
    gradients[loss] = constantSplat(builder, loss.getLoc(),
                                    cast<RankedTensorType>(loss.getType()), 1);
  for (Operation *op : llvm::reverse(ops)) {
    if (op->getNumResults() != 1 || !gradients.contains(op->getResult(0)))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("has no gradient, but the loss depends on a "
                             "parameter through it");
    SmallVector<Value> operandGrads(op->getNumOperands());
    Value resultGrad = gradients.lookup(op->getResult(0));
    differentiable.buildVjp(builder, resultGrad, operandGrads);
    for (auto [operand, gradient] :
         llvm::zip_equal(op->getOperands(), operandGrads)) {
      if (!gradient || !active.contains(operand))
        continue;
      gradient = widenGradient(builder, gradient,
                               getGradientElement(operand, parameters));
      Value &sum = gradients[operand];
      sum = sum ? builder.create<AddOp>(op->getLoc(), sum, gradient).getResult()
                : gradient;
    }
  }

  SmallVector<Value> results;
  for (Value parameter : parameters)
    results.push_back(gradients.lookup(parameter));
  return results;
}
