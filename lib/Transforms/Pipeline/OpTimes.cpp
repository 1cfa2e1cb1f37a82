//===- OpTimes.cpp - The times of a loss function's ops -------------------===//
//
// On a copy each op of the loss is a stage of its own, and the step is built.
// The stage of an op of the step then tells which op of the loss it is from.
//
//===----------------------------------------------------------------------===//

#include "OpTimes.h"

#include "InputGradients.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Transforms/Differentiate/TrainStep.h"

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

/// The bytes that cross behind each op, forward and backward.
static void addTransferTimes(func::FuncOp loss, const Link &link,
                             std::vector<OpTimes> &times) {
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
    RankedTensorType type = getTensorType(value);
    double seconds =
        static_cast<double>(type.getNumElements() *
                            getElementBytes(type.getElementType())) /
        link.bytesPerSecond;
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
    addValue(argument, first);
  }
  for (Operation &op : block)
    for (Value result : op.getResults())
      addValue(result, numbers.lookup(&op));
}

FailureOr<std::vector<OpTimes>>
shardc::estimateOpTimes(func::FuncOp loss, const Machine &machine) {
  auto module = loss->getParentOfType<ModuleOp>();
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  OwningOpRef<ModuleOp> copy = module.clone();
  auto copied = copy->lookupSymbol<func::FuncOp>(training.getLoss());
  Builder builder(module.getContext());
  std::vector<OpTimes> times;
  for (Operation &op : copied.getBody().front().without_terminator()) {
    op.setAttr(stageAttrName, builder.getI64IntegerAttr(times.size()));
    times.emplace_back();
  }
  FailureOr<func::FuncOp> step = buildTrainStep(copied, training);
  if (failed(step))
    return failure();
  addComputeTimes(*step, machine, times);
  const Link &link = machine.getLink(pipeline.getAxis().getValue());
  addTransferTimes(loss, link, times);
  auto microbatches = static_cast<double>(training.getMicrobatches());
  for (OpTimes &own : times) {
    for (double *seconds :
         {&own.forward, &own.inputGradient, &own.weightGradient,
          &own.sendForward, &own.sendBackward})
      *seconds /= microbatches;
    own.sendForward += link.latencySeconds;
    own.sendBackward += link.latencySeconds;
  }
  return times;
}
