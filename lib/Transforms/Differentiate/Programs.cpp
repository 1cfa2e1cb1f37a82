//===- Programs.cpp - Programs made from the loss function ----------------===//

#include "Programs.h"
#include "Decomposition.h"
#include "Simplify.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

using namespace mlir;
using namespace shardc;

Program::Program(func::FuncOp loss, StringRef name, Part part)
    : loss(loss), builder(loss.getContext(), this) {
  setPart(part);
  OpBuilder outer(loss);
  function = outer.create<func::FuncOp>(loss.getLoc(), name,
                                        outer.getFunctionType({}, {}));
  if (Attribute contracts = loss->getAttr(expectAttrName))
    function->setAttr(expectAttrName, contracts);
  builder.setInsertionPointToEnd(function.addEntryBlock());
}

void Program::setPart(Part next) {
  part = PartAttr::get(loss.getContext(), next);
}

void Program::notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) {
  if (!isa<func::ReturnOp>(op))
    op->setDiscardableAttr(partAttrName, part);
}

/// Moves the region and the contracts of `op` into its location, with the name
/// of the op. Ops made from it inherit the location, and the merging of equal
/// ops ignores locations.
static void moveToLocation(Operation *op) {
  SourceAttr source = SourceAttr::get(
      op->getContext(),
      StringAttr::get(op->getContext(), op->getName().stripDialect()),
      op->getAttrOfType<StringAttr>(regionAttrName), ShardingAttr(),
      op->getAttrOfType<ArrayAttr>(expectAttrName));
  op->setLoc(addMetadata(op->getLoc(), source));
  op->removeAttr(regionAttrName);
  op->removeAttr(expectAttrName);
}

Value Program::addArgument(Type type, Attribute role, ShardingAttr sharding,
                           ArrayAttr contracts, Location loc) {
  NamedAttrList attributes;
  attributes.append(roleAttrName, role);
  if (sharding)
    attributes.append(shardingAttrName, sharding);
  SourceAttr source = SourceAttr::get(function.getContext(),
                                      builder.getStringAttr(getRoleKind(role)),
                                      StringAttr(), sharding, contracts);
  argumentAttributes.push_back(attributes.getDictionary(loss.getContext()));
  return function.getBody().front().addArgument(type, addMetadata(loc, source));
}

Value Program::addArgumentOf(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  Value added =
      addArgument(argument.getType(), getRole(loss, index),
                  loss.getArgAttrOfType<ShardingAttr>(index, shardingAttrName),
                  loss.getArgAttrOfType<ArrayAttr>(index, expectAttrName),
                  argument.getLoc());
  if (Attribute classes = loss.getArgAttr(index, labelClassesAttrName)) {
    NamedAttrList attributes(argumentAttributes.back());
    attributes.set(labelClassesAttrName, classes);
    argumentAttributes.back() = attributes.getDictionary(loss.getContext());
  }
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

void Program::addInputs() {
  for (BlockArgument argument : loss.getArguments())
    if (isa<InputAttr>(getRole(loss, argument.getArgNumber())))
      addArgumentOf(argument);
}

void Program::addData() {
  for (BlockArgument argument : loss.getArguments())
    if (isa<InputAttr, LabelAttr>(getRole(loss, argument.getArgNumber())))
      addArgumentOf(argument);
}

Value Program::addState(StateAttr role, RankedTensorType type,
                        ShardingAttr sharding, Location loc) {
  return addArgument(type, role, sharding, ArrayAttr(), loc);
}

Value Program::cloneBody(bool decompose) {
  for (Operation &op : loss.getBody().front())
    moveToLocation(builder.clone(op, mapping));
  // The return op tracks the loss while decomposition replaces ops.
  auto end = cast<func::ReturnOp>(function.getBody().front().back());
  if (decompose) {
    // Dropouts look for the step counter among the arguments.
    describeArguments();
    decomposeComposites(function, /*all=*/false);
  }
  Value value = end.getOperand(0);
  end.erase();
  builder.setInsertionPointToEnd(&function.getBody().front());
  return value;
}

Value Program::cloneValue(Value value) {
  llvm::DenseSet<Value> needed = {value};
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(loss.getBody().front()))
    if (llvm::any_of(op.getResults(),
                     [&](Value result) { return needed.contains(result); })) {
      needed.insert(op.operand_begin(), op.operand_end());
      ops.push_back(&op);
    }
  for (Operation *op : llvm::reverse(ops))
    moveToLocation(builder.clone(*op, mapping));
  return mapping.lookup(value);
}

void Program::addResult(Value value, StringRef name, ShardingAttr sharding) {
  NamedAttrList attributes;
  attributes.append(resultAttrName, builder.getStringAttr(name));
  if (sharding)
    attributes.append(shardingAttrName, sharding);
  resultAttributes.push_back(attributes.getDictionary(loss.getContext()));
  results.push_back(value);
}

void Program::describeArguments() {
  function.setType(builder.getFunctionType(
      function.getBody().getArgumentTypes(), ValueRange(results).getTypes()));
  function.setAllArgAttrs(argumentAttributes);
}

func::FuncOp Program::finish() {
  builder.create<func::ReturnOp>(loss.getLoc(), results);
  describeArguments();
  function.setAllResultAttrs(resultAttributes);
  decomposeComposites(function, /*all=*/true);
  simplify(function);
  return function;
}
