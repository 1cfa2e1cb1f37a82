//===- ImportStableHLO.cpp - JAX programs as source modules ---------------===//

#include "shardc/Import/ImportStableHLO.h"
#include "Lowering.h"
#include "SignlessIntegers.h"
#include "TrainStep.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;

bool shardc::hasStableHLO(StringRef text) {
  for (size_t at = text.find("stablehlo."); at != StringRef::npos;
       at = text.find("stablehlo.", at + 1)) {
    StringRef line = text.take_front(at);
    line = line.drop_front(line.rfind('\n') + 1);
    if (!line.contains("//"))
      return true;
  }
  return false;
}

/// The attributes of shardc and sdy on argument `index` of `main`.
static LogicalResult copyArgument(func::FuncOp main, func::FuncOp function,
                                  unsigned index, const Meshes &meshes) {
  if (Attribute role = main.getArgAttr(index, roleAttrName))
    function.setArgAttr(index, roleAttrName, role);
  if (Attribute sharding = main.getArgAttr(index, "sdy.sharding")) {
    FailureOr<ShardingAttr> imported = meshes.importSharding(
        sharding, [&] { return emitError(main.getArgument(index).getLoc()); });
    if (failed(imported))
      return failure();
    function.setArgAttr(index, shardingAttrName, *imported);
  }
  if (main.getArgAttr(index, "mhlo.sharding"))
    return emitError(main.getArgument(index).getLoc())
           << "has a sharding of GSPMD: expected Shardy's "
              "(jax_use_shardy_partitioner, which is JAX's default)";
  return success();
}

/// Names the results of a train step, which have the shardings of the arguments
/// that they replace. One of them is the loss; others are metrics.
static LogicalResult copyResults(func::FuncOp main, func::FuncOp step) {
  bool hasLoss = false;
  llvm::StringSet<> names;
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto name = main.getResultAttrOfType<StringAttr>(i, resultAttrName);
    if (!name)
      return emitError(main.getLoc())
             << "result " << i << " of the train step has no name: expected a "
             << "file that shardc.jax.export wrote (docs/JAX.md)";
    if (name.empty() || !names.insert(name.getValue()).second)
      return emitError(main.getLoc())
             << "result " << i << " has the name \"" << name.getValue()
             << "\" of another result";
    step.setResultAttr(i, resultAttrName, name);
    Type type = step.getResultTypes()[i];
    if (name.getValue() == "loss") {
      hasLoss = type ==
                RankedTensorType::get({}, FloatType::getF32(type.getContext()));
      continue;
    }
    BlockArgument argument = findArgument(step, name.getValue());
    if (!argument)
      continue;
    if (argument.getType() != type)
      return emitError(main.getLoc())
             << "result " << name << " replaces an argument of another type";
    if (Attribute sharding =
            step.getArgAttr(argument.getArgNumber(), shardingAttrName))
      step.setResultAttr(i, shardingAttrName, sharding);
  }
  if (!hasLoss)
    return emitError(main.getLoc())
           << "the train step has no result \"loss\" of type tensor<f32>";
  return success();
}

static OwningOpRef<ModuleOp> convert(ModuleOp source) {
  auto main = source.lookupSymbol<func::FuncOp>("main");
  auto training = source->getAttrOfType<TrainingAttr>(trainingAttrName);
  if (!main || !main.getBody().hasOneBlock() || !training) {
    emitError(source.getLoc())
        << "is StableHLO without roles of arguments: expected a file that "
           "shardc.jax.export_loss wrote (docs/JAX.md)";
    return nullptr;
  }
  makeSignless(source);
  OwningOpRef<ModuleOp> module = ModuleOp::create(source.getLoc());
  (*module)->setAttr(trainingAttrName, training);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  FailureOr<Meshes> meshes = Meshes::read(source);
  if (failed(meshes))
    return nullptr;
  meshes->build(source.getLoc(), builder);
  bool isStep =
      main.getNumResults() > 0 && main.getResultAttr(0, resultAttrName);
  auto function = builder.create<func::FuncOp>(
      main.getLoc(), isStep ? "train_step" : training.getLoss().getValue(),
      main.getFunctionType());
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  Lowering lowering(source, *meshes, builder, isStep);
  for (BlockArgument argument : main.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (failed(copyArgument(main, function, index, *meshes)))
      return nullptr;
    StringRef name = getRoleName(getRole(main, index));
    if (failed(checkElements(argument.getLoc(), "argument \"" + name + "\" has",
                             argument.getType())))
      return nullptr;
    body->getArgument(index).setLoc(argument.getLoc());
    lowering.set(argument, body->getArgument(index));
  }
  SmallVector<Value> results;
  if (failed(lowering.run(main.getBody().front(), results)))
    return nullptr;
  lowering.getBuilder().create<func::ReturnOp>(main.getLoc(), results);
  eraseDeadOps(function);
  if (isStep) {
    if (failed(copyResults(main, function)))
      return nullptr;
    completeTrainStep(function);
  }
  if (failed(verify(*module)))
    return nullptr;
  return module;
}

OwningOpRef<ModuleOp> shardc::importStableHLO(llvm::SourceMgr &sources,
                                              MLIRContext *context) {
  bool wasAllowed = context->allowsUnregisteredDialects();
  context->allowUnregisteredDialects();
  OwningOpRef<ModuleOp> module;
  if (OwningOpRef<ModuleOp> source =
          parseSourceFile<ModuleOp>(sources, ParserConfig(context)))
    module = convert(*source);
  context->allowUnregisteredDialects(wasAllowed);
  return module;
}

std::optional<std::string> shardc::importStableHLOText(StringRef text,
                                                       StringRef name,
                                                       raw_ostream &errors) {
  if (!hasStableHLO(text))
    return text.str();
  DialectRegistry registry;
  registry.insert<ShardcDialect, func::FuncDialect>();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(text, name, false), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context, errors);
  OwningOpRef<ModuleOp> module = importStableHLO(sources, &context);
  if (!module)
    return std::nullopt;
  std::string printed;
  llvm::raw_string_ostream os(printed);
  module->print(os, OpPrintingFlags().enableDebugInfo());
  return printed;
}
