//===- GlobalRun.cpp - The global program, evaluated ----------------------===//

#include "shardc/Interpreter/GlobalRun.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

FailureOr<GlobalRun> GlobalRun::run(func::FuncOp function, InputKind kind) {
  GlobalRun result;
  for (BlockArgument argument : function.getArguments())
    result.values[argument] =
        makeInput(function, argument.getArgNumber(), kind);
  for (Operation &op : function.getBody().front().without_terminator())
    if (failed(result.evaluate(op, {})))
      return failure();
  return result;
}

/// As many rows as a run takes, in the order of the batch.
static SmallVector<SmallVector<int64_t>> getRowsInOrder(AccumulateOp loop) {
  SmallVector<SmallVector<int64_t>> rows;
  auto count = static_cast<int64_t>(loop.getCount());
  for (int64_t run = 0; run < count; ++run)
    rows.push_back(llvm::to_vector(
        llvm::seq(run * loop.getRows(), (run + 1) * loop.getRows())));
  return rows;
}

LogicalResult GlobalRun::evaluate(Operation &op, MicrobatchRows microbatch) {
  if (auto id = op.getAttrOfType<IntegerAttr>(idAttrName))
    byId[id.getInt()] = op.getResult(0);
  if (auto loop = dyn_cast<AccumulateOp>(op))
    return evaluateLoop(loop, getRowsInOrder(loop));
  SmallVector<const Tensor *> operands;
  for (Value operand : op.getOperands())
    operands.push_back(&get(operand));
  FailureOr<Tensor> tensor =
      evaluateOp(&op, operands, Devices{MeshAxes()}, 0, microbatch);
  if (failed(tensor))
    return failure();
  values[op.getResult(0)] = std::move(*tensor);
  return success();
}

LogicalResult GlobalRun::evaluateLoop(AccumulateOp loop,
                                      ArrayRef<SmallVector<int64_t>> rows) {
  for (Value result : loop.getResults())
    values[result] =
        Tensor(cast<RankedTensorType>(result.getType()).getShape(), 0);
  for (auto [run, rowsOfRun] : llvm::enumerate(rows)) {
    if (failed(runBody(loop, {static_cast<int64_t>(run), rowsOfRun})))
      return failure();
    for (auto [result, summand] :
         llvm::zip_equal(loop.getResults(), loop.getYield().getOperands())) {
      Tensor &sum = values[result];
      for (auto [element, term] : llvm::zip_equal(sum.data, get(summand).data))
        element += term;
    }
  }
  return success();
}

LogicalResult GlobalRun::regroup(AccumulateOp loop,
                                 ArrayRef<SmallVector<int64_t>> rows) {
  if (failed(evaluateLoop(loop, rows)))
    return failure();
  for (Operation *op = loop->getNextNode();
       !op->hasTrait<OpTrait::IsTerminator>(); op = op->getNextNode())
    if (failed(evaluate(*op, {})))
      return failure();
  return success();
}

LogicalResult GlobalRun::runBody(AccumulateOp loop, MicrobatchRows microbatch) {
  for (auto [operand, slice] :
       llvm::zip_equal(loop.getOperands(), loop.getSlices())) {
    Tensor rows = takeRows(get(operand), microbatch.rows);
    values[slice] = std::move(rows);
  }
  for (Operation &op : loop.getBody().front().without_terminator())
    if (failed(evaluate(op, microbatch)))
      return failure();
  return success();
}
