//===- OpTimes.cpp - The times of a loss function's ops -------------------===//
//
// On a copy each op of the loss is a stage of its own, and the step is built.
// The stage of an op of the step then tells which op of the loss it is from.
//
//===----------------------------------------------------------------------===//

#include "OpTimes.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Transforms/Differentiate/TrainStep.h"
#include "shardc/Transforms/Pipeline/InputGradients.h"

using namespace mlir;
using namespace shardc;

/// The number of the op of the loss that `op` of the step is from, or -1.
static int64_t getOrigin(Operation *op) {
  auto stage = op->getAttrOfType<IntegerAttr>(stageAttrName);
  return stage ? stage.getInt() : -1;
}

static void addComputeTimes(func::FuncOp step, const Machine &machine,
                            std::vector<OpTimes> &times) {
  Block &block = step.getBody().front();
  MemoryTraffic traffic(step);
  llvm::DenseSet<Operation *> inputGradients = findInputGradients(block);
  for (Operation &op : block) {
    int64_t origin = getOrigin(&op);
    if (origin < 0 || isPart(&op, Part::Update))
      continue;
    OpWork work = getOpWork(&op, traffic);
    double seconds =
        getComputeSeconds(machine, work) + getMemorySeconds(machine, work);
    OpTimes &own = times[origin];
    if (isPart(&op, Part::Forward))
      own.forward += seconds;
    else if (inputGradients.contains(&op))
      own.inputGradient += seconds;
    else
      own.weightGradient += seconds;
  }
}

static double getBytes(Value value) {
  RankedTensorType type = getTensorType(value);
  return static_cast<double>(type.getNumElements() *
                             getElementBytes(type.getElementType()));
}

/// Adds what the backward pass of `step` uses of the forward pass.
static void addStash(func::FuncOp step, std::vector<double> &stashBytes) {
  for (Operation &op : step.getBody().front()) {
    int64_t origin = getOrigin(&op);
    if (origin < 0 || !isPart(&op, Part::Forward))
      continue;
    for (Value result : op.getResults())
      if (llvm::any_of(result.getUsers(), [](Operation *user) {
            return isPart(user, Part::Backward);
          }))
        stashBytes[origin] += getBytes(result);
  }
}

/// The bytes that cross behind each op, forward and backward.
static void addTransferTimes(func::FuncOp loss, const Link &link,
                             OpCosts &costs) {
  std::vector<OpTimes> &times = costs.times;
  llvm::DenseMap<Operation *, size_t> numbers;
  llvm::DenseSet<Value> trained;
  for (unsigned index = 0; index < loss.getNumArguments(); ++index)
    if (isWeight(loss.getArgument(index)))
      trained.insert(loss.getArgument(index));
  Block &block = loss.getBody().front();
  for (auto [number, op] : llvm::enumerate(block)) {
    numbers[&op] = number;
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return trained.contains(operand); }))
      trained.insert(op.result_begin(), op.result_end());
  }
  auto addValue = [&](Value value, size_t from) {
    double seconds = getBytes(value) / link.bytesPerSecond;
    size_t last = from;
    for (Operation *user : value.getUsers())
      last = std::max(last, numbers.lookup(user));
    for (size_t number = from; number < std::min(last, times.size());
         ++number) {
      times[number].sendForward += seconds;
      if (trained.contains(value))
        times[number].sendBackward += seconds;
    }
  };
  for (BlockArgument argument : loss.getArguments()) {
    if (!isWeight(argument) || argument.use_empty())
      continue;
    size_t first = times.size();
    for (Operation *user : argument.getUsers())
      first = std::min(first, numbers.lookup(user));
    costs.parameterBytes[first] += getBytes(argument);
    addValue(argument, first);
  }
  for (Operation &op : block)
    for (Value result : op.getResults())
      addValue(result, numbers.lookup(&op));
}

FailureOr<OpCosts> shardc::estimateOpCosts(func::FuncOp loss,
                                           const Machine &machine) {
  auto module = loss->getParentOfType<ModuleOp>();
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  OwningOpRef<ModuleOp> copy = module.clone();
  auto copied = copy->lookupSymbol<func::FuncOp>(training.getLoss());
  Builder builder(module.getContext());
  OpCosts costs;
  std::vector<OpTimes> &times = costs.times;
  for (Operation &op : copied.getBody().front().without_terminator()) {
    op.setAttr(stageAttrName, builder.getI64IntegerAttr(times.size()));
    times.emplace_back();
  }
  FailureOr<func::FuncOp> step = buildTrainStep(copied, training);
  if (failed(step))
    return failure();
  addComputeTimes(*step, machine, times);
  costs.parameterBytes.resize(times.size());
  costs.stashBytes.resize(times.size());
  addStash(*step, costs.stashBytes);
  const Link &link = machine.getLink(pipeline.getAxis().getValue());
  addTransferTimes(loss, link, costs);
  auto microbatches = static_cast<double>(training.getMicrobatches());
  for (double &bytes : costs.stashBytes)
    bytes /= microbatches;
  for (OpTimes &own : times) {
    for (double *seconds :
         {&own.forward, &own.inputGradient, &own.weightGradient,
          &own.sendForward, &own.sendBackward})
      *seconds /= microbatches;
    own.sendForward += link.latencySeconds;
    own.sendBackward += link.latencySeconds;
  }
  return costs;
}
