//===- ModuleQueries.cpp - Queries about attributes of a module -----------===//

#include "shardc/Analysis/ModuleQueries.h"

#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Prediction.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace shardc;

StringRef shardc::getRoleName(func::FuncOp function, unsigned index) {
  Attribute role = function.getArgAttr(index, roleAttrName);
  if (!role)
    return {};
  return llvm::TypeSwitch<Attribute, StringRef>(role)
      .Case<ParameterAttr, StateAttr, CopyAttr, InputAttr, LabelAttr>(
          [](auto attr) { return attr.getName().getValue(); })
      .Default([](Attribute) { return StringRef(); });
}

/// `dictionary`, which may be null, with `name` set to `value` unless that is
/// null.
static DictionaryAttr with(MLIRContext *context, DictionaryAttr dictionary,
                           StringRef name, Attribute value) {
  NamedAttrList attributes;
  if (dictionary)
    attributes = NamedAttrList(dictionary);
  if (value)
    attributes.set(name, value);
  return attributes.getDictionary(context);
}

void shardc::setArgAttrs(func::FuncOp function, StringRef name,
                         llvm::function_ref<Attribute(unsigned)> get) {
  SmallVector<DictionaryAttr> all;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    all.push_back(with(function.getContext(), function.getArgAttrDict(index),
                       name, get(index)));
  function.setAllArgAttrs(all);
}

void shardc::setResultAttrs(func::FuncOp function, StringRef name,
                            llvm::function_ref<Attribute(unsigned)> get) {
  SmallVector<DictionaryAttr> all;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    all.push_back(with(function.getContext(), function.getResultAttrDict(index),
                       name, get(index)));
  function.setAllResultAttrs(all);
}

llvm::StringMap<BlockArgument>
shardc::getArgumentsByName(func::FuncOp function) {
  llvm::StringMap<BlockArgument> arguments;
  for (BlockArgument argument : function.getArguments())
    if (StringRef name = getRoleName(function, argument.getArgNumber());
        !name.empty())
      arguments[name] = argument;
  return arguments;
}

FailureOr<MeshOp> shardc::getMesh(ModuleOp module) {
  auto meshes = module.getOps<MeshOp>();
  if (meshes.empty()) {
    module.emitError("has no `shardc.mesh`");
    return failure();
  }
  MeshOp mesh = *meshes.begin();
  if (mesh.getAxes().size() > 64) {
    mesh.emitOpError("has ")
        << mesh.getAxes().size() << " axes; the partitioner takes at most 64";
    return failure();
  }
  return mesh;
}

func::FuncOp shardc::getStep(ModuleOp module) {
  if (auto step = module.lookupSymbol<func::FuncOp>("train_step"))
    return step;
  auto functions = module.getOps<func::FuncOp>();
  return functions.empty() ? func::FuncOp() : *functions.begin();
}

SmallVector<func::FuncOp> shardc::getExplainedPrograms(ModuleOp module) {
  SmallVector<func::FuncOp> programs;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && getProgramName(function) != kPredictName)
      programs.push_back(function);
  return programs;
}

StringRef shardc::getProgramName(func::FuncOp function) {
  auto program = function->getAttrOfType<StringAttr>(programAttrName);
  return program ? program.getValue() : function.getName();
}

bool shardc::usesAllAxes(ModuleOp module) {
  auto mode = module->getAttrOfType<StringAttr>(partitionAttrName);
  return mode && mode.getValue() == "cheapest";
}

CostsByPart shardc::getCostsByPart(func::FuncOp function,
                                   const MeshAxes &mesh) {
  CollectiveCosts costs;
  auto module = function->getParentOfType<ModuleOp>();
  if (auto rates =
          module->getAttrOfType<DictionaryAttr>(secondsPerByteAttrName)) {
    std::vector<double> secondsPerByte(mesh.getNumAxes(), 0);
    for (NamedAttribute rate : rates)
      if (int axis = mesh.find(rate.getName().getValue()); axis >= 0)
        secondsPerByte[axis] =
            cast<FloatAttr>(rate.getValue()).getValueAsDouble();
    costs = CollectiveCosts(secondsPerByte);
  }
  auto attrs = function->getAttrOfType<ArrayAttr>(startsAttrName);
  if (!attrs)
    return {costs, costs, costs};
  std::set<MergedCollective> starts;
  for (auto attr : attrs.getAsRange<StartAttr>()) {
    AxisSet axes = 0;
    for (StringAttr name : attr.getAxes())
      if (int axis = mesh.find(name.getValue()); axis >= 0)
        axes |= axisBit(axis);
    starts.insert({attr.getPart(), {attr.getKind(), axes}});
  }
  return allowOnly(starts, costs);
}

bool shardc::isPart(Operation *op, Part part) {
  auto attr = op->getAttrOfType<PartAttr>(partAttrName);
  return attr && attr.getValue() == part;
}

bool shardc::areInOneTask(Operation *lhs, Operation *rhs) {
  return lhs->getAttr(stageAttrName) == rhs->getAttr(stageAttrName) &&
         lhs->getAttr(taskAttrName) == rhs->getAttr(taskAttrName) &&
         addsOverStages(lhs) == addsOverStages(rhs);
}

void shardc::setPlaceInStep(Operation *to, Operation *from) {
  for (StringRef name :
       {partAttrName, stageAttrName, taskAttrName, recomputedAttrName})
    if (Attribute attr = from->getAttr(name))
      to->setAttr(name, attr);
}

bool shardc::isInForwardPass(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>(partAttrName);
  return part ? part.getValue() == Part::Forward
              : !op->hasTrait<OpTrait::IsTerminator>();
}

bool shardc::isWeight(Value value) {
  if (auto copy = value.getDefiningOp<ConvertOp>())
    value = copy.getOperand();
  auto argument = dyn_cast<BlockArgument>(value);
  auto function = dyn_cast<func::FuncOp>(value.getParentBlock()->getParentOp());
  return argument && function &&
         isa_and_nonnull<ParameterAttr>(
             function.getArgAttr(argument.getArgNumber(), roleAttrName));
}

Part shardc::getPartMadeIn(Value value) {
  Operation *op = getComputingOp(value);
  if (auto slice = dyn_cast<BlockArgument>(value))
    if (auto loop = dyn_cast<AccumulateOp>(slice.getOwner()->getParentOp()))
      op = loop;
  if (op) {
    auto part = op->getAttrOfType<PartAttr>(partAttrName);
    return part ? part.getValue() : Part::Forward;
  }
  // An argument: the first op of its block that uses it, also in a nested
  // block.
  Operation *first = nullptr;
  for (Operation *user : value.getUsers()) {
    if (!first) {
      first = user;
      continue;
    }
    Operation *lhs = getUserInBlock(value, user);
    Operation *rhs = getUserInBlock(value, first);
    if (lhs == rhs ? user->isBeforeInBlock(first) : lhs->isBeforeInBlock(rhs))
      first = user;
  }
  if (!first || isa<func::ReturnOp>(first))
    return Part::Update;
  auto part = first->getAttrOfType<PartAttr>(partAttrName);
  return part ? part.getValue() : Part::Forward;
}

static FileLineColLoc findFile(Location loc) {
  FileLineColLoc found;
  loc->walk([&](Location inner) {
    found = dyn_cast<FileLineColLoc>(inner);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

std::string shardc::getSourceLine(Location loc) {
  FileLineColLoc file = findFile(loc);
  if (!file)
    return "an unknown place";
  return (llvm::sys::path::filename(file.getFilename().getValue()) + ":" +
          Twine(file.getLine()))
      .str();
}

std::string shardc::getSourceText(Location loc) {
  FileLineColLoc file = findFile(loc);
  if (!file)
    return "";
  return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
          Twine(file.getColumn()))
      .str();
}
