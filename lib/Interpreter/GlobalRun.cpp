//===- GlobalRun.cpp - The global program, evaluated ----------------------===//

#include "shardc/Interpreter/GlobalRun.h"

#include "shardc/Interpreter/EvaluateOp.h"

using namespace mlir;
using namespace shardc;

FailureOr<GlobalRun> GlobalRun::run(func::FuncOp function, InputKind kind) {
  GlobalRun result;
  for (BlockArgument argument : function.getArguments())
    result.values[argument] =
        makeInput(function, argument.getArgNumber(), kind);
  Devices one{MeshAxes()};
  for (Operation &op : function.getBody().front().without_terminator()) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&result.get(operand));
    FailureOr<Tensor> tensor = evaluateOp(&op, operands, one, 0);
    if (failed(tensor))
      return failure();
    result.values[op.getResult(0)] = std::move(*tensor);
    if (auto id = op.getAttrOfType<IntegerAttr>("shardc.id"))
      result.byId[id.getInt()] = op.getResult(0);
  }
  return result;
}
