//===- Programs.cpp - Programs made from the loss function ----------------===//

#include "Programs.h"
#include "Decomposition.h"
#include "Simplify.h"

#include "shardc/Dialect/Shardc/IR/Roles.h"

using namespace mlir;
using namespace shardc;

Program::Program(func::FuncOp loss, StringRef name, Part part)
    : loss(loss), builder(loss.getContext(), this) {
  setPart(part);
  OpBuilder outer(loss);
  function = outer.create<func::FuncOp>(loss.getLoc(), name,
                                        outer.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

void Program::setPart(Part next) {
  part = PartAttr::get(loss.getContext(), next);
}

void Program::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  if (!isa<func::ReturnOp>(op))
    op->setDiscardableAttr("shardc.part", part);
}

Value Program::addArgument(Type type, Attribute role, Attribute sharding,
                           Location loc) {
  NamedAttrList attributes;
  attributes.append("shardc.role", role);
  if (sharding)
    attributes.append("shardc.sharding", sharding);
  unsigned index = function.getNumArguments();
  function.insertArgument(index, type,
                          attributes.getDictionary(function.getContext()), loc);
  return function.getArgument(index);
}

Value Program::addArgumentOf(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  Value added =
      addArgument(argument.getType(), getRole(loss, index),
                  loss.getArgAttr(index, "shardc.sharding"), argument.getLoc());
  if (Attribute classes = loss.getArgAttr(index, "shardc.label_classes"))
    function.setArgAttr(cast<BlockArgument>(added).getArgNumber(),
                        "shardc.label_classes", classes);
  mapping.map(argument, added);
  return added;
}

SmallVector<Value> Program::addParameters() {
  SmallVector<Value> parameters;
  for (BlockArgument argument : loss.getArguments())
    if (isa<ParameterAttr>(getRole(loss, argument.getArgNumber())))
      parameters.push_back(addArgumentOf(argument));
  return parameters;
}

void Program::addData() {
  for (BlockArgument argument : loss.getArguments())
    if (isa<InputAttr, LabelAttr>(getRole(loss, argument.getArgNumber())))
      addArgumentOf(argument);
}

Value Program::addState(StateAttr role, RankedTensorType type,
                        ShardingAttr sharding, Location loc) {
  return addArgument(type, role, sharding, loc);
}

Value Program::cloneBody(bool decompose) {
  for (Operation &op : loss.getBody().front())
    builder.clone(op, mapping);
  // The return keeps track of the loss while its op is replaced.
  auto end = cast<func::ReturnOp>(function.getBody().front().back());
  if (decompose)
    decomposeComposites(function, /*all=*/false);
  Value value = end.getOperand(0);
  end.erase();
  builder.setInsertionPointToEnd(&function.getBody().front());
  return value;
}

void Program::addResult(Value value, StringRef name, ShardingAttr sharding) {
  NamedAttrList attributes;
  attributes.append("shardc.result", builder.getStringAttr(name));
  if (sharding)
    attributes.append("shardc.sharding", sharding);
  function.insertResult(results.size(), value.getType(),
                        attributes.getDictionary(function.getContext()));
  results.push_back(value);
}

func::FuncOp Program::finish() {
  builder.create<func::ReturnOp>(loss.getLoc(), results);
  decomposeComposites(function, /*all=*/true);
  simplify(function);
  return function;
}
