//===- Dialect.cpp - Registration and dialect-wide verification -----------===//
//
// Registers attributes and ops, and verifies the dialect's attributes on
// modules and function arguments as they are parsed.
//
//===----------------------------------------------------------------------===//

#include "PlanAttributes.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Expect.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TrainingText.h"
#include "shardc/Dialect/Shardc/IR/VerifySharding.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cctype>

using namespace mlir;
using namespace shardc;

#include "shardc/Dialect/Shardc/IR/ShardcDialect.cpp.inc"
#include "shardc/Dialect/Shardc/IR/ShardcInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "shardc/Dialect/Shardc/IR/ShardcAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "shardc/Dialect/Shardc/IR/ShardcTypes.cpp.inc"

namespace {

/// Gives shardings short names at the top of a printed module: `#rows`-like
/// aliases are easier to read than the same list of axes on every argument.
struct ShardcAsmInterface : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    auto sharding = dyn_cast<ShardingAttr>(attr);
    if (!sharding)
      return AliasResult::NoAlias;
    os << "sharding";
    for (DimShardingAttr dim : sharding.getDims()) {
      os << '_';
      if (dim.getAxes().empty())
        os << (dim.getIsClosed() ? "r" : "o");
      llvm::interleave(
          dim.getAxes(), os, [&](StringAttr axis) { os << axis.getValue(); },
          "_x_");
    }
    if (!sharding.getUnreduced().empty())
      os << "_unreduced";
    return AliasResult::OverridableAlias;
  }
};

LogicalResult verifyRules(Operation *op, Attribute attr) {
  auto rules = dyn_cast<DictionaryAttr>(attr);
  if (!rules)
    return op->emitError("`shardc.rules` must be a dictionary from logical "
                         "axis name to a list of mesh axes");
  for (NamedAttribute rule : rules) {
    auto axes = dyn_cast<ArrayAttr>(rule.getValue());
    if (!axes || !llvm::all_of(axes, llvm::IsaPred<StringAttr>))
      return op->emitError("`shardc.rules`: the rule of \"")
             << rule.getName().getValue()
             << "\" must be a list of mesh axis names, such as [\"data\"]";
  }
  return success();
}

LogicalResult verifyPipeline(Operation *op, Attribute value) {
  auto pipeline = dyn_cast<PipelineAttr>(value);
  auto module = dyn_cast<ModuleOp>(op);
  if (!pipeline || !module)
    return op->emitError("`shardc.pipeline` must be a #shardc.pipeline "
                         "attribute on the module");
  for (MeshOp mesh : module.getOps<MeshOp>())
    // A mesh without a name is an error that is found later.
    if (mesh.getSymNameAttr() &&
        failed(verifyAxis(pipeline.getAxis(), mesh,
                          [&] { return op->emitError("`shardc.pipeline` "); })))
      return failure();
  return success();
}

/// Whether `op` is in the function that is the loss of its module.
bool isInLoss(Operation *op, ModuleOp module) {
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  auto function = op->getParentOfType<func::FuncOp>();
  return training && function && function.getSymNameAttr() &&
         function.getSymName() == training.getLoss().getValue();
}

LogicalResult verifyRecompute(Operation *op, Attribute value) {
  auto policy = dyn_cast<StringAttr>(value);
  if (!isa<ModuleOp>(op) || !policy || !isRecomputePolicy(policy.getValue()))
    return op->emitError("`shardc.recompute` must be \"none\", \"layer\", "
                         "\"stage\" or \"auto\" on the module, got ")
           << value;
  return success();
}

LogicalResult verifyStage(Operation *op, Attribute value) {
  auto stage = dyn_cast<IntegerAttr>(value);
  if (!stage || !stage.getType().isSignlessInteger(64) || stage.getInt() < 0)
    return op->emitError("`shardc.stage` must be an i64 of at least 0, such "
                         "as 1 : i64, got ")
           << value;
  auto module = op->getParentOfType<ModuleOp>();
  if (!module || isInLoss(op, module))
    return success();
  if (!module->hasAttr(pipelineAttrName))
    return op->emitOpError(
        "has a `shardc.stage`, but the module has no `shardc.pipeline`");
  std::optional<PipelineSize> size = getPipelineSize(module);
  if (size && stage.getInt() >= size->getNumStages())
    return op->emitOpError("is on stage ")
           << stage.getInt() << ", but the pipeline has stages 0 to "
           << size->getNumStages() - 1;
  return success();
}

/// The type of argument `index` of `op` if it is a static tensor, else null.
RankedTensorType argumentTensor(Operation *op, unsigned index) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || index >= function.getNumArguments())
    return {};
  return dyn_cast<RankedTensorType>(function.getArgumentTypes()[index]);
}

} // namespace

void ShardcDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shardc/Dialect/Shardc/IR/ShardcAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "shardc/Dialect/Shardc/IR/ShardcTypes.cpp.inc"
      >();
  registerShardcDialectOperations(this);
  addInterfaces<ShardcAsmInterface>();
}

/// Whether `value` is an i64 of at least 0.
static bool isNumber(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64) &&
         number.getInt() >= 0;
}

Attribute ShardcDialect::parseAttribute(DialectAsmParser &parser,
                                        Type type) const {
  llvm::SMLoc at = parser.getCurrentLocation();
  StringRef mnemonic;
  Attribute attribute;
  if (generatedAttributeParser(parser, &mnemonic, type, attribute).has_value())
    return attribute;
  if (mnemonic == "assignment")
    return StrategyAttr::parse(parser, type);
  parser.emitError(at) << "unknown attribute `" << mnemonic << "` in dialect `"
                       << getNamespace() << "`";
  return {};
}

void ShardcDialect::printAttribute(Attribute attribute,
                                   DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attribute, printer);
}

LogicalResult
ShardcDialect::verifyOperationAttribute(Operation *op,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  Attribute value = attribute.getValue();
  if (name == rulesAttrName)
    return verifyRules(op, value);
  if (name == unevenAttrName) {
    auto policy = dyn_cast<StringAttr>(value);
    if (!policy || !symbolizeUnevenPolicy(policy.getValue()))
      return op->emitError("`shardc.uneven` must be \"pad\" or \"error\"");
  }
  if (name == trainingAttrName) {
    auto training = dyn_cast<TrainingAttr>(value);
    if (!training || !isa<ModuleOp>(op))
      return op->emitError("`shardc.training` must be a #shardc.training "
                           "attribute on the module");
  }
  if (name == pipelineAttrName)
    return verifyPipeline(op, value);
  if (name == recomputeAttrName)
    return verifyRecompute(op, value);
  if (name == stageAttrName)
    return verifyStage(op, value);
  if ((name == taskAttrName || name == programAttrName ||
       name == tasksAttrName || name == noPredictionAttrName) &&
      !isa<StringAttr>(value))
    return op->emitError("`") << name << "` must be a string, got " << value;
  if (name == rankAttrName && !isNumber(value))
    return op->emitError("`")
           << name << "` must be an i64 of at least 0, got " << value;
  if (name == partAttrName && !isa<PartAttr>(value))
    return op->emitError("`shardc.part` must be a #shardc.part attribute");
  if (name == gatheredForAttrName && !isa<PartAttr>(value))
    return op->emitError(
        "`shardc.gathered_for` must be a #shardc.part attribute");
  if (name == regatherAttrName && !isa<RegatherAttr>(value))
    return op->emitError(
        "`shardc.regather` must be a #shardc.regather attribute");
  if (name == madeInAttrName && !isa<PartAttr>(value))
    return op->emitError("`shardc.made_in` must be a #shardc.part attribute");
  if (name == costAttrName || name == startsAttrName ||
      name == secondsPerByteAttrName)
    return verifyPlanAttribute(op, attribute);
  if (name == manualAttrName &&
      (!isa<ShardingConstraintOp>(op) || !isa<StringAttr>(value)))
    return op->emitError("`shardc.manual` must be a string on a "
                         "`shardc.sharding_constraint`");
  if (name == expectAttrName || name == regionAttrName)
    return verifyExpectAttribute(op, attribute);
  if ((name == strategyAttrName || name == formerStrategyAttrName) &&
      !isa<StrategyAttr>(value))
    return op->emitError() << '`' << name
                           << "` must be a #shardc.strategy attribute";
  if (name == formerStrategyAttrName && op->hasAttr(strategyAttrName))
    return op->emitError("`shardc.assignment` is the former name of "
                         "`shardc.strategy`, which is given, too");
  return success();
}

LogicalResult
ShardcDialect::verifyRegionArgAttribute(Operation *op, unsigned regionIndex,
                                        unsigned argIndex,
                                        NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  Attribute value = attribute.getValue();
  auto emitError = [&] {
    return op->emitError("argument ") << argIndex << ": `" << name << "` ";
  };

  if (name == expectAttrName)
    return verifyExpectations(value, op, ExpectScope::Argument, emitError);
  if (name == numberAttrName && !isNumber(value))
    return emitError() << "must be an i64 of at least 0, got " << value;
  RankedTensorType type = argumentTensor(op, argIndex);
  if (!type)
    return emitError() << "needs an argument that is a tensor";
  if (name == roleAttrName) {
    if (!isa<ParameterAttr, StateAttr, CopyAttr, InputAttr, LabelAttr>(value))
      return emitError() << "must be #shardc.parameter, #shardc.state, "
                            "#shardc.copy, #shardc.input or #shardc.label";
    // Names are those of entries in files of arrays, and stand in reports.
    StringRef named = getRoleName(value).getValue();
    if (llvm::any_of(named, [](unsigned char c) { return std::iscntrl(c); }))
      return emitError() << "has a name with control characters: "
                         << getRoleName(value);
    return success();
  }
  if (name == unpaddedRowsAttrName) {
    // After `partition` types are local and the global shape stands beside.
    auto shape =
        cast<FunctionOpInterface>(op).getArgAttrOfType<DenseI64ArrayAttr>(
            argIndex, globalShapeAttrName);
    ArrayRef<int64_t> sizes = shape ? shape.asArrayRef() : type.getShape();
    if (sizes.empty() || !isNumber(value) ||
        cast<IntegerAttr>(value).getInt() < 1 ||
        cast<IntegerAttr>(value).getInt() > sizes.front())
      return emitError() << "must be an i64 from 1 to the rows of the "
                            "argument, got "
                         << value;
    return success();
  }
  if (name == logicalAxesAttrName) {
    auto axes = dyn_cast<ArrayAttr>(value);
    if (!axes || !llvm::all_of(axes, llvm::IsaPred<StringAttr>))
      return emitError() << "must be a list of logical axis names";
    if (static_cast<int64_t>(axes.size()) != type.getRank())
      return emitError() << "has " << axes.size()
                         << " names for a tensor of rank " << type.getRank();
    return success();
  }
  if (name == shardingAttrName || name == stateShardingAttrName ||
      name == gradShardingAttrName) {
    auto sharding = dyn_cast<ShardingAttr>(value);
    if (!sharding)
      return emitError() << "must be a #shardc.sharding attribute";
    auto function = cast<FunctionOpInterface>(op);
    Location loc = function.isExternal()
                       ? op->getLoc()
                       : function.getArgument(argIndex).getLoc();
    // After `partition` types are local and the global shape stands beside.
    if (auto shape = function.getArgAttrOfType<DenseI64ArrayAttr>(
            argIndex, globalShapeAttrName))
      type = RankedTensorType::get(shape.asArrayRef(), type.getElementType());
    return verifySharding(sharding, type, op, [&]() -> InFlightDiagnostic {
      return mlir::emitError(loc)
             << "argument " << argIndex << ": `" << name << "` ";
    });
  }
  return success();
}
