//===- Trial.cpp - A candidate on a model ---------------------------------===//

#include "shardc/Advice/Trial.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Driver/ReadModel.h"
#include "shardc/Models/AnnotateStrategy.h"
#include "shardc/Models/EditSource.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/RankPrograms.h"
#include "shardc/Report/TimeEstimate.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <map>

using namespace mlir;
using namespace shardc;

static std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerShardcDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->printOpOnDiagnostic(false);
  return context;
}

static int64_t getBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * getElementBytes(tensor.getElementType());
}

/// What `differentiated` says, with a step over the whole batch.
static ModelFacts getFacts(ModuleOp differentiated) {
  ModelFacts facts;
  auto step = differentiated.lookupSymbol<func::FuncOp>("train_step");
  for (BlockArgument argument : step.getArguments()) {
    Attribute role = getRole(step, argument.getArgNumber());
    auto type = cast<RankedTensorType>(argument.getType());
    if (isa_and_nonnull<ParameterAttr>(role)) {
      facts.numParameters += type.getNumElements();
      facts.parameterBytes += getBytes(type);
    } else if (isa_and_nonnull<StateAttr>(role)) {
      facts.stateBytes += getBytes(type);
    } else if (isa_and_nonnull<InputAttr>(role) && type.getRank() > 0) {
      facts.batchSize = std::max(facts.batchSize, type.getDimSize(0));
    }
  }
  step.walk([&](Operation *op) {
    facts.matmulFlops += getMatmulFlops(op) * getNumRuns(op);
  });
  return facts;
}

std::optional<ModelFacts> shardc::readFacts(const ModelToShard &model,
                                            llvm::raw_ostream &os) {
  std::unique_ptr<MLIRContext> context = makeContext();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(model.text, model.name),
      llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, context.get(), os);
  OwningOpRef<ModuleOp> module = parseModel(sources, *context);
  if (!module)
    return std::nullopt;
  if (!getLoss(*module)) {
    module->emitError("has no loss function to shard: expected a model with "
                      "`shardc.training`, as shardc-gen and "
                      "shardc.jax.export_loss write them");
    return std::nullopt;
  }
  for (const std::string &name : model.fixedArguments)
    if (!findArgument(getLoss(*module), name)) {
      module->emitError("has no argument '") << name << "' for --fix";
      return std::nullopt;
    }
  // On one device with the axes that strategies have.
  removeAnnotations(*module);
  setMesh(*module, {{"data", 1}});
  int64_t numLayers = LayerRoles(getLoss(*module)).getNumLayers();
  CompileOptions options = model.options;
  options.microbatches = 1;
  CompileState state;
  PassManager manager(context.get());
  buildPhases(manager, 0, getPhaseIndex("differentiate"), options, state);
  if (failed(manager.run(*module)))
    return std::nullopt;
  ModelFacts facts = getFacts(*module);
  facts.numLayers = numLayers;
  return facts;
}

double Price::getExposedSeconds(const Machine &machine) const {
  // Devices wait for their inputs anyway.
  if (inputSeconds > 0 && inputSeconds >= seconds)
    return 0;
  // Ranks of a pipeline run one op after the other.
  if (machine.isShared || waitSeconds > 0)
    return communicationSeconds;
  return std::min(communicationSeconds,
                  std::max(0.0, seconds - computeSeconds - memorySeconds));
}

int64_t Price::getWireBytes() const {
  int64_t bytes = 0;
  for (const auto &[axes, sent] : wireBytes)
    bytes += sent;
  return bytes;
}

llvm::Expected<ParsedModel> ParsedModel::parse(const ModelToShard &model) {
  ParsedModel parsed;
  parsed.context = makeContext();
  // Errors of the text itself have been reported with the facts.
  std::string error;
  ScopedDiagnosticHandler silence(parsed.context.get(),
                                  [&](Diagnostic &diagnostic) {
                                    error = diagnostic.str();
                                    return success();
                                  });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(model.text, model.name),
      llvm::SMLoc());
  parsed.module = parseModel(sources, *parsed.context);
  if (!parsed.module)
    return llvm::createStringError(error);
  return parsed;
}

llvm::Expected<Trial> Trial::make(const ModelToShard &model,
                                  const Candidate &candidate) {
  llvm::Expected<ParsedModel> parsed = ParsedModel::parse(model);
  if (!parsed)
    return parsed.takeError();
  return make(model, candidate, std::move(parsed->module),
              std::move(parsed->context));
}

llvm::Expected<Trial> Trial::make(const ModelToShard &model,
                                  const Candidate &candidate,
                                  const ParsedModel &parsed) {
  return make(model, candidate, ModuleOp(parsed.module.get()).clone(),
              parsed.context);
}

llvm::Expected<Trial> Trial::make(const ModelToShard &model,
                                  const Candidate &candidate,
                                  OwningOpRef<ModuleOp> module,
                                  std::shared_ptr<MLIRContext> context) {
  Trial trial;
  trial.candidate = candidate;
  trial.context = std::move(context);
  trial.module = std::move(module);
  std::string error;
  ScopedDiagnosticHandler silence(trial.context.get(),
                                  [&](Diagnostic &diagnostic) {
                                    error = diagnostic.str();
                                    return success();
                                  });
  removeAnnotations(*trial.module, model.fixedArguments);
  setMesh(*trial.module, candidate.mesh);
  annotateStrategy(*trial.module, candidate.getStrategy());
  setSchedule(*trial.module, candidate.schedule, candidate.virtualStages);
  auto training =
      (*trial.module)->getAttrOfType<TrainingAttr>(trainingAttrName);
  (*trial.module)
      ->setAttr(
          trainingAttrName,
          TrainingAttr::get(trial.context.get(), training.getLoss(),
                            training.getOptimizer(), training.getClipNorm(),
                            training.getSchedule(), candidate.microbatches));
  if (candidate.recompute != "none")
    (*trial.module)
        ->setAttr(recomputeAttrName,
                  StringAttr::get(trial.context.get(), candidate.recompute));
  trial.stageCuts = model.stageCuts;
  trial.isFree = model.fixedArguments.empty();
  trial.options = model.options;
  trial.options.mesh.clear();
  trial.options.microbatches = 0;
  trial.options.recompute.clear();
  trial.options.regather = candidate.regather;
  trial.options.partition = candidate.isCheapest() ? "cheapest" : "follow";
  auto machine = loadMachineFor(*trial.module->getOps<MeshOp>().begin(),
                                model.options.machine);
  if (!machine)
    return machine.takeError();
  trial.machine = std::move(*machine);
  return trial;
}

/// The bytes of `report` by axes, in the order of first use.
static std::vector<std::pair<std::string, int64_t>>
getBytesByAxes(const CommunicationReport &report) {
  std::vector<std::pair<std::string, int64_t>> bytes;
  for (const CollectiveEntry &entry : report.collectives) {
    std::string axes = llvm::join(entry.axes, "+");
    auto found = llvm::find_if(
        bytes, [&](const auto &each) { return each.first == axes; });
    if (found == bytes.end())
      bytes.emplace_back(axes, entry.wireBytes);
    else
      found->second += entry.wireBytes;
  }
  llvm::erase_if(bytes, [](const auto &each) { return each.second == 0; });
  return bytes;
}

/// Adds the costs of `programs`: the step, or its part of each rank.
static void addPrograms(ArrayRef<func::FuncOp> programs, const Machine &machine,
                        double devices, Price &price) {
  double busiest = -1;
  int64_t most = -1, largest = 0;
  for (func::FuncOp program : programs) {
    TimeEstimate time = estimateTime(program, machine);
    price.inputSeconds = std::max(price.inputSeconds, time.inputSeconds);
    program.walk([&](Operation *op) {
      if (int64_t flops = getMatmulFlops(op); flops > largest) {
        largest = flops;
        price.computeType = getOpWork(op, MemoryTraffic(program)).computeType;
      }
    });
    // The ranks of a measured computer run one after the other.
    if (machine.computer) {
      price.computeSeconds += time.computeSeconds;
      price.memorySeconds += time.memorySeconds;
      price.communicationSeconds += time.communicationSeconds;
    } else if (time.getSeconds() > busiest) {
      busiest = time.getSeconds();
      price.computeSeconds = time.computeSeconds;
      price.memorySeconds = time.memorySeconds;
      price.communicationSeconds = time.communicationSeconds;
    }
    CommunicationReport report = getCommunicationReport(program);
    price.matmulFlops +=
        report.matmulFlopsPerDevice * devices / programs.size();
    auto bytes = getBytesByAxes(report);
    int64_t sum = 0;
    for (const auto &[axes, sent] : bytes)
      sum += sent;
    if (sum > most)
      price.wireBytes = std::move(bytes);
    most = std::max(most, sum);
  }
  if (programs.size() > 1 && !machine.computer)
    price.waitSeconds = std::max(0.0, price.seconds - busiest);
}

LowerBound Trial::getLowerBound(const ModelFacts &facts,
                                ArrayRef<int64_t> stages) const {
  LowerBound bound = shardc::getLowerBound(*module, facts, candidate, machine,
                                           options.dtype == "bf16", stages);
  // Annotations that stay may shard what the strategy leaves whole.
  if (!isFree)
    bound.memoryBytes = bound.stateBytes;
  return bound;
}

std::vector<int64_t> Trial::assignStages() {
  int import = getPhaseIndex("import");
  if (!compileOnTrial(*module, import, import, options, stageCuts).empty())
    return {};
  return getStagesOfLayers(*module);
}

llvm::Expected<Price> Trial::price(bool compares) {
  std::string error = compileOnTrial(*module, 0, getPhaseIndex("memory"),
                                     options, stageCuts, compares);
  if (!error.empty())
    return llvm::createStringError(error);
  return getPrice(*module);
}

llvm::Error Trial::prepare() {
  std::string error = compileOnTrial(*module, 0, getPhaseIndex("collectives"),
                                     options, stageCuts, /*compares=*/false);
  return error.empty() ? llvm::Error::success()
                       : llvm::createStringError(error);
}

int64_t Trial::getArgumentBytes() const {
  auto step = module.get().lookupSymbol<func::FuncOp>("train_step");
  int64_t bytes = 0;
  for (Type type : step.getArgumentTypes())
    bytes += getBytes(type);
  return bytes;
}

llvm::Expected<Price> Trial::priceRecomputing(StringRef policy) const {
  OwningOpRef<ModuleOp> copy = ModuleOp(module.get()).clone();
  if (policy != "none")
    (*copy)->setAttr(recomputeAttrName, StringAttr::get(context.get(), policy));
  std::string error = compileOnTrial(*copy, getPhaseIndex("collectives") + 1,
                                     getPhaseIndex("memory"), options);
  if (!error.empty())
    return llvm::createStringError(error);
  return getPrice(*copy);
}

llvm::Expected<Price> Trial::priceStep(double limit) {
  int kernels = getPhaseIndex("kernels"), memory = getPhaseIndex("memory");
  std::string error = compileOnTrial(*module, 0, kernels, options, stageCuts);
  if (!error.empty())
    return llvm::createStringError(error);
  stepPrice.seconds = getTaskBound(*module, candidate, machine);
  if (stepPrice.seconds > limit)
    return stepPrice;
  step = takeStep(*module);
  error = compileOnTrial(*step, kernels + 1, memory, options);
  if (!error.empty())
    return llvm::createStringError(error);
  llvm::Expected<Price> price = getPrice(*step);
  if (price)
    stepPrice = *price;
  return price;
}

using FunctionsByRank = std::map<int64_t, SmallVector<func::FuncOp>>;

/// The functions of `module`, a pipeline after `memory`.
static FunctionsByRank getFunctionsByRank(ModuleOp module) {
  FunctionsByRank ranks;
  for (auto function : module.getOps<func::FuncOp>())
    ranks[function->getAttrOfType<IntegerAttr>(rankAttrName).getInt()]
        .push_back(function);
  return ranks;
}

/// The bytes of the arena of a rank that `step` and `others` share, which were
/// planned apart: all arguments, and behind them what one of them needs.
static FailureOr<int64_t> getSharedArena(ArrayRef<func::FuncOp> step,
                                         ArrayRef<func::FuncOp> others) {
  int64_t behind = 0;
  for (ArrayRef<func::FuncOp> planned : {step, others}) {
    FailureOr<ArgumentLayout> arguments = placeArguments(planned);
    if (failed(arguments))
      return failure();
    for (func::FuncOp function : planned)
      behind = std::max(
          behind,
          function->getAttrOfType<IntegerAttr>(peakBytesAttrName).getInt() -
              arguments->bytes);
  }
  SmallVector<func::FuncOp> all(step);
  llvm::append_range(all, others);
  FailureOr<ArgumentLayout> arguments = placeArguments(all);
  if (failed(arguments))
    return failure();
  return arguments->bytes + behind;
}

llvm::Expected<Price> Trial::priceAll() {
  std::string error = compileOnTrial(*module, getPhaseIndex("kernels") + 1,
                                     getPhaseIndex("memory"), options);
  if (!error.empty())
    return llvm::createStringError(error);
  ScopedDiagnosticHandler silence(context.get(), [&](Diagnostic &diagnostic) {
    error = diagnostic.str();
    return success();
  });
  Price price = stepPrice;
  FunctionsByRank others = getFunctionsByRank(*module);
  for (const auto &[rank, functions] : getFunctionsByRank(*step)) {
    FailureOr<int64_t> arena = getSharedArena(functions, others[rank]);
    if (failed(arena))
      return llvm::createStringError(error);
    price.peakBytes = std::max(price.peakBytes, *arena);
  }
  return price;
}

llvm::Expected<Price> Trial::getPrice(ModuleOp plan) const {
  double devices = (*plan.getOps<MeshOp>().begin()).getNumDevices();
  llvm::Expected<PlanEstimate> estimate = getEstimate(plan, options);
  if (!estimate)
    return estimate.takeError();
  Price price;
  price.isCompiled = true;
  price.seconds = estimate->overlappedSeconds;
  SmallVector<func::FuncOp> ranks = getRankPrograms(plan, "train_step");
  if (ranks.empty()) {
    ranks = {plan.lookupSymbol<func::FuncOp>("train_step")};
    price.peakBytes =
        plan->getAttrOfType<IntegerAttr>(arenaBytesAttrName).getInt();
  }
  for (auto function : plan.getOps<func::FuncOp>())
    if (auto bytes = function->getAttrOfType<IntegerAttr>(arenaBytesAttrName))
      price.peakBytes = std::max(price.peakBytes, bytes.getInt());
  addPrograms(ranks, machine, devices, price);
  if (ranks.size() > 1) {
    FailureOr<PipelineSimulation> tasks = simulateTasks(ranks, machine);
    if (failed(tasks))
      return llvm::createStringError("the pipeline has no schedule");
    price.bubble = tasks->getBubble();
  }
  return price;
}

std::string Trial::print(const ModelToShard &model, std::string &why) const {
  llvm::Expected<std::string> edited = editSource(model.text, *module);
  if (edited)
    return std::move(*edited);
  why = llvm::toString(edited.takeError());
  std::string text;
  llvm::raw_string_ostream(text) << *module << '\n';
  return text;
}
