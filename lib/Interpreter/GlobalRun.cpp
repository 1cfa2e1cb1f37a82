//===- GlobalRun.cpp - The global program, evaluated ----------------------===//

#include "shardc/Interpreter/GlobalRun.h"

using namespace mlir;
using namespace shardc;

FailureOr<GlobalRun> GlobalRun::run(func::FuncOp function, InputKind kind) {
  GlobalRun result;
  for (BlockArgument argument : function.getArguments())
    result.values[argument] =
        makeInput(function, argument.getArgNumber(), kind);
  if (failed(result.evaluate(function.getBody().front(), {})))
    return failure();
  return result;
}

LogicalResult GlobalRun::evaluate(Block &block, MicrobatchRows microbatch) {
  Devices one{MeshAxes()};
  for (Operation &op : block.without_terminator()) {
    if (auto id = op.getAttrOfType<IntegerAttr>("shardc.id"))
      byId[id.getInt()] = op.getResult(0);
    if (auto loop = dyn_cast<AccumulateOp>(op)) {
      if (failed(evaluateLoop(loop)))
        return failure();
      continue;
    }
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&get(operand));
    FailureOr<Tensor> tensor = evaluateOp(&op, operands, one, 0, microbatch);
    if (failed(tensor))
      return failure();
    values[op.getResult(0)] = std::move(*tensor);
  }
  return success();
}

LogicalResult GlobalRun::evaluateLoop(AccumulateOp loop) {
  for (Value result : loop.getResults())
    values[result] =
        Tensor(cast<RankedTensorType>(result.getType()).getShape(), 0);
  auto count = static_cast<int64_t>(loop.getCount());
  for (int64_t run = 0; run < count; ++run) {
    SmallVector<int64_t> rows;
    for (int64_t row = 0; row < loop.getRows(); ++row)
      rows.push_back(run * loop.getRows() + row);
    if (failed(runBody(loop, {run, rows})))
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

LogicalResult GlobalRun::runBody(AccumulateOp loop, MicrobatchRows microbatch) {
  for (auto [operand, slice] :
       llvm::zip_equal(loop.getOperands(), loop.getSlices())) {
    Tensor rows = takeRows(get(operand), microbatch.rows);
    values[slice] = std::move(rows);
  }
  return evaluate(loop.getBody().front(), microbatch);
}
