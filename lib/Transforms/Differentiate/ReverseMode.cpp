//===- ReverseMode.cpp - Gradients of a block's result --------------------===//
//
// Reverse-mode differentiation (Griewank and Walther 2008). Ops are visited
// from the last to the first. Each builds the gradients of its operands from
// that of its result (DifferentiableOpInterface).
//
// A parameter of f32 that is used in bf16 gets its gradient in f32. Sums in
// GEMMs, over several uses, over devices and over microbatches are formed in
// f32 and never rounded to bf16 in between.
//
//===----------------------------------------------------------------------===//

#include "ReverseMode.h"
#include "WidenGradient.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Builders.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-differentiate"

using namespace mlir;
using namespace shardc;

/// The active values: floating-point values that depend on a parameter by a
/// path without a stop_gradient.
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

/// Gives the ops behind `last` the pipeline stage of `source`, if it has one: a
/// gradient is on the stage of the op that it is the gradient of. An addition
/// of gradients is thereby on the earlier of the two stages.
static void setStageBehind(Operation *last, Operation *source) {
  Attribute stage = source ? source->getAttr(stageAttrName) : Attribute();
  if (!stage)
    return;
  for (Operation *op = last->getNextNode(); op; op = op->getNextNode())
    op->setAttr(stageAttrName, stage);
}

/// The element type of the gradient of `value`. It is that of `value`, unless
/// `value` is a parameter converted to a narrower type: then it is that of the
/// parameter.
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
  if (active.contains(loss)) {
    gradients[loss] = constantSplat(builder, loss.getLoc(),
                                    cast<RankedTensorType>(loss.getType()), 1);
    setStageBehind(ops.back(), loss.getDefiningOp());
  }
  for (Operation *op : llvm::reverse(ops)) {
    if (op->getNumResults() != 1 || !gradients.contains(op->getResult(0)))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("has no gradient, but the loss depends on a "
                             "parameter through it");
    LLVM_DEBUG(llvm::dbgs() << "differentiate " << describeOp(op) << '\n');
    Operation *last = &block.back();
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
    setStageBehind(last, op);
  }

  SmallVector<Value> results;
  for (Value parameter : parameters)
    results.push_back(gradients.lookup(parameter));
  return results;
}
