//===- CallOps.cpp - Calls, composites and ops without effect -------------===//

#include "Lowering.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

/// Inlines the function that `op` calls.
static LogicalResult inlineCall(Lowering &lowering, Operation *op,
                                FlatSymbolRefAttr callee) {
  auto function = callee
                      ? lowering.getSource().lookupSymbol<func::FuncOp>(callee)
                      : func::FuncOp();
  if (!function || function.isExternal() ||
      function.getNumArguments() != op->getNumOperands() ||
      function.getNumResults() != op->getNumResults())
    return emitError(op->getLoc())
           << "calls a function that the module does not have";
  Block &body = function.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), op->getOperands()))
    lowering.set(argument, lowering.get(operand));
  SmallVector<Value> results;
  if (failed(lowering.run(body, results)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    lowering.set(result, value);
  return success();
}

static LogicalResult lowerCall(Lowering &lowering, Operation *op) {
  return inlineCall(lowering, op,
                    op->getAttrOfType<FlatSymbolRefAttr>("callee"));
}

template <typename Op>
static Value build(Lowering &lowering, Operation *op) {
  Value x = lowering.get(op, 0);
  return lowering.getBuilder().create<Op>(op->getLoc(), x.getType(), x);
}

/// The exporter writes as composites what has a gradient of its own.
static LogicalResult lowerComposite(Lowering &lowering, Operation *op) {
  static const struct {
    StringLiteral name;
    Value (*build)(Lowering &, Operation *);
  } composites[] = {{"shardc.relu", build<ReluOp>},
                    {"shardc.sigmoid", build<SigmoidOp>},
                    {"shardc.stop_gradient", build<StopGradientOp>}};
  auto name = op->getAttrOfType<StringAttr>("name");
  for (const auto &each : composites)
    if (name && name.getValue() == each.name && op->getNumOperands() == 1)
      return lowering.set(op, each.build(lowering, op));
  return inlineCall(lowering, op,
                    op->getAttrOfType<FlatSymbolRefAttr>("decomposition"));
}

static LogicalResult forward(Lowering &lowering, Operation *op) {
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands(), op->getResults()))
    lowering.set(result, lowering.get(operand));
  return success();
}

static LogicalResult lowerConstraint(Lowering &lowering, Operation *op) {
  FailureOr<ShardingAttr> sharding = importSharding(
      op->getAttr("sharding"), [&] { return emitError(op->getLoc()); });
  if (failed(sharding))
    return failure();
  Value x = lowering.get(op, 0);
  return lowering.set(
      op, lowering.getBuilder().create<ShardingConstraintOp>(
              op->getLoc(), x.getType(), x, *sharding, ArrayAttr()));
}

ArrayRef<OpLowering> shardc::getCallLowerings() {
  static const OpLowering table[] = {
      {"func.call", lowerCall},
      {"stablehlo.composite", lowerComposite},
      {"stablehlo.optimization_barrier", forward},
      {"sdy.sharding_constraint", lowerConstraint},
  };
  return table;
}
