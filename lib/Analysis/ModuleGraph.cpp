//===- ModuleGraph.cpp - The sharding graph of a module -------------------===//

#include "shardc/Analysis/ModuleGraph.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

FailureOr<ModuleGraph> ModuleGraph::build(ModuleOp module, bool regathers) {
  ModuleGraph result;
  result.regathers = regathers;
  FailureOr<MeshOp> mesh = getMesh(module);
  if (failed(mesh))
    return failure();
  result.mesh = *mesh;
  result.graph.mesh = getMeshAxes(*mesh);
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(result.addFunction(function)))
      return failure();
  return result;
}

int ModuleGraph::addValue(RankedTensorType type, ShardingAttr annotation,
                          AnnotationClass annotationClass, std::string name) {
  GraphValue value;
  value.shape.assign(type.getShape().begin(), type.getShape().end());
  value.elementBytes = getElementBytes(type.getElementType());
  value.dims.resize(type.getRank());
  value.annotationClass = annotationClass;
  value.name = std::move(name);
  if (annotation) {
    Layout layout = getLayout(annotation, graph.mesh);
    for (auto [dim, attr, axes] :
         llvm::zip_equal(value.dims, annotation.getDims(), layout.dims))
      dim = {axes, attr.getIsClosed(), attr.getPriority().value_or(0)};
    value.unreduced = layout.unreduced;
    for (StringAttr axis : annotation.getReplicated())
      value.forbidden |= axisBit(graph.mesh.find(axis.getValue()));
  }
  graph.values.push_back(std::move(value));
  return graph.values.size() - 1;
}

LogicalResult ModuleGraph::addFunction(func::FuncOp op) {
  if (!op.getBody().hasOneBlock())
    return op.emitOpError("must have one block to be partitioned");
  Function function;
  function.op = op;
  function.firstOp = graph.ops.size();
  for (unsigned index = 0; index < op.getNumArguments(); ++index)
    if (failed(addArgument(function, index)))
      return failure();
  Operation *terminator = op.getBody().front().getTerminator();
  for (Operation &nested : op.getBody().front().without_terminator())
    if (failed(addOp(&nested)))
      return failure();
  llvm::StringMap<BlockArgument> names = getArgumentsByName(function.op);
  for (unsigned index = 0; index < terminator->getNumOperands(); ++index)
    addResult(function, names, index);
  function.endOp = graph.ops.size();
  functions.push_back(std::move(function));
  return success();
}

LogicalResult ModuleGraph::addArgument(Function &function, unsigned index) {
  BlockArgument argument = function.op.getArgument(index);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  if (!type)
    return emitError(argument.getLoc(), "argument ")
           << index << " must be a tensor, got " << argument.getType();
  auto annotation =
      function.op.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
  if (annotation && !annotation.getUnreduced().empty())
    return emitError(argument.getLoc(), "argument ")
           << index << ": `shardc.sharding` is unreduced over "
           << annotation.getUnreduced().front()
           << ", but arguments are whole values";
  Attribute role = function.op.getArgAttr(index, roleAttrName);
  StringRef name = getRoleName(function.op, index);
  auto annotationClass = AnnotationClass::Input;
  if (isa_and_nonnull<ParameterAttr>(role))
    annotationClass = AnnotationClass::Parameter;
  else if (isa_and_nonnull<StateAttr>(role))
    annotationClass = AnnotationClass::State;

  int id = -1;
  if (auto it = named.find(name); !name.empty() && it != named.end()) {
    // The same tensor in another program.
    auto [known, first] = it->second;
    auto owner = cast<func::FuncOp>(first.getOwner()->getParentOp());
    auto other = owner.getArgAttrOfType<ShardingAttr>(first.getArgNumber(),
                                                      shardingAttrName);
    if (first.getType() == type && (!annotation || annotation == other)) {
      id = known;
    } else {
      auto diagnostic = emitError(argument.getLoc(), "\"")
                        << name << "\" is declared twice and differently";
      diagnostic.attachNote(first.getLoc()) << "the other declaration is here";
      return diagnostic;
    }
  }
  if (auto state = dyn_cast_or_null<StateAttr>(role);
      id < 0 && state && state.getParameter() && !annotation) {
    // A state without an annotation has its parameter's sharding.
    auto it = named.find(state.getParameter().getValue());
    if (it != named.end() &&
        cast<RankedTensorType>(it->second.second.getType()).getShape() ==
            type.getShape())
      id = it->second.first;
  }
  bool isShared = id >= 0;
  if (id < 0) {
    id = addValue(type, annotation, annotationClass,
                  name.empty() ? "argument " + std::to_string(index)
                               : name.str());
    graph.values[id].isStored = true;
  }
  if (!name.empty())
    named.try_emplace(name, id, argument);
  ids[argument] = tensors[argument] = id;
  if (isShared)
    tensors[argument] = addTensor(id);
  if (regathers && isWeight(argument))
    addLateTensor(argument);
  function.arguments.push_back(id);
  return success();
}

int ModuleGraph::addTensor(int id) {
  GraphValue tensor = graph.values[id];
  tensor.dims.assign(tensor.dims.size(), {});
  tensor.storedAs = id;
  graph.values.push_back(std::move(tensor));
  return graph.values.size() - 1;
}

/// The number of times that a pass moves a value for its uses that satisfy
/// `isUse`: once per run of the loop around all of them, or once.
static int64_t countMoves(Value value,
                          llvm::function_ref<bool(Operation *)> isUse) {
  int64_t runs = 0;
  for (Operation *user : value.getUsers())
    if (isUse(user))
      runs = runs == 0 ? getNumRuns(user) : std::min(runs, getNumRuns(user));
  return runs;
}

static bool isInBackwardPass(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>(partAttrName);
  return part && part.getValue() == Part::Backward;
}

/// If both passes use `weight`, makes a tensor of each of the two uses. If
/// `convert` makes `weight`, a parameter in another type, both are its results.
/// The update is not a pass here: it reads weights in their storage sharding.
void ModuleGraph::addLateTensor(Value weight, GraphOp *convert) {
  int64_t early = countMoves(weight, isInForwardPass);
  int64_t late = countMoves(weight, isInBackwardPass);
  if (early == 0 || late == 0)
    return;
  int tensor = tensors[weight];
  if (convert) {
    auto type = cast<RankedTensorType>(weight.getType());
    lateTensors[weight] = addValue(type, {}, AnnotationClass::Constraint, "");
    convert->results.push_back(lateTensors[weight]);
    convert->rule.results.push_back(convert->rule.results[0]);
  } else {
    lateTensors[weight] = addTensor(ids[weight]);
    // The stored value does not move; the tensors that the passes read do.
    if (tensor == ids[weight])
      tensor = tensors[weight] = addTensor(tensor);
  }
  graph.values[lateTensors[weight]].repeats = late;
  graph.values[tensor].repeats = early;
}

int ModuleGraph::getTensor(Operation *op, Value operand) {
  auto late = lateTensors.find(operand);
  return late == lateTensors.end() || isInForwardPass(op) ? tensors[operand]
                                                          : late->second;
}

void ModuleGraph::addResult(Function &function,
                            const llvm::StringMap<BlockArgument> &names,
                            unsigned index) {
  Value value =
      function.op.getBody().front().getTerminator()->getOperand(index);
  auto type = cast<RankedTensorType>(value.getType());
  int id = -1;
  auto name =
      function.op.getResultAttrOfType<StringAttr>(index, resultAttrName);
  if (name)
    if (BlockArgument argument = names.lookup(name.getValue());
        argument && argument.getType() == type)
      id = function.arguments[argument.getArgNumber()];
  if (id < 0)
    id = addValue(
        type,
        function.op.getResultAttrOfType<ShardingAttr>(index, shardingAttrName),
        AnnotationClass::Constraint,
        name ? name.str() : "result " + std::to_string(index));
  graph.values[id].isResult = !graph.values[id].isStored;
  function.results.push_back(id);
  GraphOp tie;
  tie.kind = GraphOp::Return;
  tie.rule = getIdentityRule(type.getShape());
  tie.operands = {ids[value]};
  tie.tensors = {tensors[value]};
  tie.results = {id};
  tie.part = Part::Update;
  graph.ops.push_back(std::move(tie));
  operations.push_back(nullptr);
}

LogicalResult ModuleGraph::addOp(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface)
    return op->emitOpError("has no sharding rule; composites are decomposed "
                           "before propagation");
  GraphOp node;
  node.rule = interface.getShardingRule();
  for (Value operand : op->getOperands()) {
    node.operands.push_back(ids[operand]);
    node.tensors.push_back(getTensor(op, operand));
  }
  if (auto part = op->getAttrOfType<PartAttr>(partAttrName))
    node.part = part.getValue();
  ShardingAttr annotation;
  auto annotationClass = AnnotationClass::Constraint;
  if (auto constraint = dyn_cast<ShardingConstraintOp>(op)) {
    node.kind = GraphOp::Constraint;
    if (!constraint.getSharding())
      return op->emitOpError("has logical axes that `import` has not resolved");
    annotation = *constraint.getSharding();
    // A constraint on a gradient stands at its end, not at its origin.
    if (auto part = op->getAttrOfType<PartAttr>(partAttrName);
        part && part.getValue() != Part::Forward)
      annotationClass = AnnotationClass::State;
  }
  auto loop = dyn_cast<AccumulateOp>(op);
  SmallVector<Value> results(op->getResults());
  if (loop)
    results.assign(loop.getSlices().begin(), loop.getSlices().end());
  for (Value result : results) {
    int id = addValue(cast<RankedTensorType>(result.getType()), annotation,
                      annotationClass,
                      node.kind == GraphOp::Constraint
                          ? "constraint at " + getSourceLine(op->getLoc())
                          : "");
    graph.values[id].repeats = getNumRuns(loop ? loop.getYield() : op);
    ids[result] = tensors[result] = id;
    node.results.push_back(id);
    if (regathers && isWeight(result))
      addLateTensor(result, &node);
  }
  graph.ops.push_back(std::move(node));
  operations.push_back(op);
  return loop ? addBody(loop) : success();
}

/// A sum over a loop has the layout of its summands, which may be partial sums:
/// both are one value.
LogicalResult ModuleGraph::addBody(AccumulateOp loop) {
  for (Operation &nested : loop.getBody().front().without_terminator())
    if (failed(addOp(&nested)))
      return failure();
  for (auto [result, summand] :
       llvm::zip_equal(loop.getResults(), loop.getYield().getOperands())) {
    ids[result] = ids[summand];
    tensors[result] = tensors[summand];
    graph.values[ids[summand]].repeats = 1;
  }
  return success();
}
