//===- MemoryBound.cpp - The least memory of a step -----------------------===//
//
// A GEMM's input is kept from the forward pass for the gradient of its weight.
// When a rank begins a backward pass with most microbatches in flight, all of
// these are in memory at once.
//
//===----------------------------------------------------------------------===//

#include "MemoryBound.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/PipelineSchedules/PipelineSchedule.h"

#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

/// The bytes of a layer on a device that has it.
struct LayerBytes {
  /// Parameter, states and gathered weight.
  double held = 0;
  /// The sum of gradients over microbatches.
  double sum = 0;
  /// Its input, and the gradient of its result, of one microbatch.
  double input = 0, gradient = 0;

  void operator+=(const LayerBytes &other) {
    held += other.held;
    sum += other.sum;
    input += other.input;
    gradient += other.gradient;
  }
};

} // namespace

/// By layer the fewest elements of a value between the one before and it,
/// through which all goes: any of them may be kept in place of the input. Empty
/// if the loss is no chain of ops, each with one value that depends on inputs.
static std::vector<double> getLeastBetween(func::FuncOp loss,
                                           ArrayRef<Layer> layers) {
  llvm::DenseSet<Value> dependent;
  for (BlockArgument argument : loss.getArguments())
    if (isa_and_nonnull<InputAttr>(getRole(loss, argument.getArgNumber())))
      dependent.insert(argument);
  std::vector<double> least;
  double fewest = 0;
  for (Operation &op : loss.getBody().front()) {
    if (least.size() == layers.size())
      return least;
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      if (dependent.contains(operand))
        operands.push_back(operand);
    if (operands.empty())
      continue;
    if (operands.size() > 1 || !operands[0].hasOneUse() ||
        op.getNumResults() != 1)
      return {};
    bool isLayer = operands[0] == layers[least.size()].inputValue;
    if (isLayer)
      least.push_back(fewest);
    double elements = getElements(op.getResult(0));
    fewest = isLayer ? elements : std::min(fewest, elements);
    dependent.insert(op.getResult(0));
  }
  return least.size() == layers.size() ? least : std::vector<double>();
}

/// Of the inputs of layers, those elements that are kept for the backward pass
/// or, with the policy `stage`, repeated for it.
static std::vector<double> getKeptElements(func::FuncOp loss,
                                           ArrayRef<Layer> layers,
                                           const Candidate &candidate) {
  std::vector<double> kept;
  llvm::DenseSet<Value> counted;
  for (const Layer &layer : layers)
    // What comes into the step counts there.
    kept.push_back(isa<BlockArgument>(layer.inputValue) ||
                           !counted.insert(layer.inputValue).second
                       ? 0
                       : layer.input);
  // Without a function between two layers gradients of inputs need no value in
  // between, and it may be repeated later.
  if (candidate.recompute == "stage")
    for (auto [layer, elements] : llvm::zip_equal(layers, kept))
      if (isa_and_nonnull<LinearOp, DotGeneralOp>(
              layer.inputValue.getDefiningOp()))
        elements = 0;
  if (candidate.recompute != "layer")
    return kept;
  std::vector<double> least = getLeastBetween(loss, layers);
  least.resize(layers.size(), 0);
  for (auto [elements, between] : llvm::zip_equal(kept, least))
    elements = std::min(elements, between);
  return kept;
}

namespace {

/// The bytes of one rank's layers with a number of microbatches in flight.
struct RankMemory {
  /// How many times it has the inputs of its layers, at the least: when it has
  /// most, and when it has most and sums of gradients beside them.
  double times = 0, timesWithSums = 0;

  double getBytes(const LayerBytes &layers) const {
    return layers.held + std::max(times * layers.input,
                                  layers.sum + timesWithSums * layers.input);
  }
};

} // namespace

/// The inputs that a rank has of all its stages, in copies, if it has `most` of
/// each, though not at one time. Its layers are divided among the stages so
/// that the largest of most[s]·bytes[s] is least: where all are equal.
static double getTimes(ArrayRef<int> most) {
  double parts = 0;
  for (int number : most) {
    if (number == 0)
      return 0;
    parts += 1.0 / number;
  }
  return 1 / parts;
}

/// By rank of a pipeline.
static std::vector<RankMemory> getRankMemory(const Candidate &candidate) {
  std::vector<RankMemory> ranks(candidate.getStages());
  llvm::Expected<PipelineSchedule> schedule =
      makePipelineSchedule(candidate.schedule, candidate.getStages(),
                           candidate.virtualStages, candidate.microbatches);
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return ranks;
  }
  // The policy `stage` repeats one microbatch of one stage.
  bool repeats = candidate.recompute == "stage";
  int64_t stages = candidate.getStages();
  for (auto [rank, tasks] : llvm::enumerate(schedule->ranks)) {
    // By stage of the rank.
    std::vector<int> live(candidate.virtualStages, 0),
        most = live, withSums = live, done = live;
    for (const PipelineTask &task : tasks) {
      int64_t own = task.stage / stages;
      if (task.kind == TaskKind::Forward) {
        ++live[own];
      } else if (task.kind != TaskKind::InputGradient) {
        --live[own];
        ++done[own];
      }
      int number = repeats ? std::min(live[own], 1) : live[own];
      most[own] = std::max(most[own], number);
      if (!llvm::is_contained(done, 0))
        withSums[own] = std::max(withSums[own], number);
    }
    ranks[rank] = {getTimes(most), getTimes(withSums)};
  }
  return ranks;
}

/// Whether neighbours among `layers` can be given to `ranks`, none of which has
/// more than `most` bytes.
static bool canDivide(ArrayRef<LayerBytes> layers, ArrayRef<RankMemory> ranks,
                      double most) {
  size_t rank = 0;
  LayerBytes sum;
  for (const LayerBytes &layer : layers) {
    sum += layer;
    while (ranks[rank].getBytes(sum) > most) {
      if (++rank == ranks.size())
        return false;
      sum = layer;
    }
  }
  return true;
}

/// The bytes of the rank that needs most.
static double getLargestRank(ArrayRef<LayerBytes> layers,
                             const Candidate &candidate) {
  std::vector<RankMemory> ranks = getRankMemory(candidate);
  LayerBytes all;
  for (const LayerBytes &layer : layers)
    all += layer;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const RankMemory &rank : ranks) {
    low = std::min(low, rank.getBytes(all) / static_cast<double>(ranks.size()));
    high = std::max(high, rank.getBytes(all));
  }
  // Stages of a rank that has several are no neighbours.
  if (candidate.virtualStages > 1)
    return low;
  for (int i = 0; i < 40; ++i) {
    double middle = (low + high) / 2;
    (canDivide(layers, ranks, middle) ? high : low) = middle;
  }
  return low;
}

/// The bytes of the rank that needs most, where layers have `stages`.
static double getLargestRank(ArrayRef<LayerBytes> layers,
                             ArrayRef<int64_t> stages,
                             const Candidate &candidate) {
  llvm::Expected<PipelineSchedule> schedule =
      makePipelineSchedule(candidate.schedule, candidate.getStages(),
                           candidate.virtualStages, candidate.microbatches);
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return 0;
  }
  std::vector<LayerBytes> ofStages(schedule->getNumStages());
  for (auto [layer, stage] : llvm::zip_equal(layers, stages))
    ofStages[stage] += layer;
  bool repeats = candidate.recompute == "stage";
  double largest = 0;
  for (auto [rank, tasks] : llvm::enumerate(schedule->ranks)) {
    double bytes = 0, most = 0;
    for (auto [stage, ofRank] : llvm::enumerate(schedule->rankOfStage))
      if (ofRank == static_cast<int>(rank))
        bytes += ofStages[stage].held;
    most = bytes;
    std::vector<bool> hasSum(ofStages.size(), false);
    for (const PipelineTask &task : tasks) {
      const LayerBytes &own = ofStages[task.stage];
      // Nothing waits for gradients of the stage of the first layer: its
      // backward pass is one with gradients of weights.
      bool isInputGradient = task.kind == TaskKind::InputGradient;
      bool isWhole =
          task.stage <= stages.front() || task.kind == TaskKind::Backward;
      bool isForward = task.kind == TaskKind::Forward;
      if (isInputGradient && isWhole)
        continue;
      // What is repeated lives from the backward pass on.
      if (repeats ? !isForward && (isInputGradient || isWhole) : isForward)
        bytes += own.input;
      if (isInputGradient)
        bytes += own.gradient;
      most = std::max(most, bytes);
      if (isForward || isInputGradient)
        continue;
      bytes -= own.input;
      if (!isWhole)
        bytes -= own.gradient;
      if (!hasSum[task.stage])
        bytes += own.sum;
      hasSum[task.stage] = true;
    }
    largest = std::max({largest, most, bytes});
  }
  return largest;
}

double shardc::getMemoryBound(func::FuncOp loss, ArrayRef<Layer> layers,
                              const ModelFacts &facts,
                              const Candidate &candidate, bool isNarrow,
                              double modelSize, ArrayRef<int64_t> stages) {
  if (layers.empty())
    return 0;
  MeshOp mesh = *loss->getParentOfType<ModuleOp>().getOps<MeshOp>().begin();
  Strategy strategy = candidate.getStrategy();
  double elementBytes = isNarrow ? 2 : 4;
  double rows = candidate.getRowShards();
  std::vector<double> kept = getKeptElements(loss, layers, candidate);
  std::vector<LayerBytes> bytes;
  llvm::DenseSet<Value> weights;
  for (auto [layer, elements] : llvm::zip_equal(layers, kept)) {
    LayerBytes &own = bytes.emplace_back();
    own.input = elements / rows / static_cast<double>(candidate.microbatches) /
                (layer.isByRow ? modelSize : 1) * elementBytes;
    own.gradient = layer.result / rows /
                   static_cast<double>(candidate.microbatches) /
                   (layer.isByRow ? 1 : modelSize) * elementBytes;
    // A tied weight is where it is used first.
    if (!weights.insert(layer.argument).second)
      continue;
    unsigned index = layer.argument.getArgNumber();
    auto storage = loss.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
    auto states =
        loss.getArgAttrOfType<ShardingAttr>(index, stateShardingAttrName);
    own.held = layer.weightBytes / getShards(mesh, storage) +
               layer.weightBytes * facts.getStatesPerParameter() /
                   getShards(mesh, states ? states : storage);
    double local =
        layer.weight / getShardsAlong(mesh, storage, strategy.modelAxis);
    bool isGathered = !strategy.parameterAxis.empty();
    bool hasCopy = isGathered ? !candidate.regather : isNarrow;
    // The first weight is of no use after the forward pass, where no loop holds
    // it.
    bool isInLoop = candidate.microbatches > 1 && candidate.getStages() == 1;
    if (hasCopy && (isInLoop || layer.hasInputGradient))
      own.held += local * elementBytes;
    if (candidate.microbatches > 1 && strategy.gradientAxis.empty())
      own.sum = local * layer.weightBytes / layer.weight;
  }
  // The batch, on the ranks that use it.
  bool isPipeline = candidate.getStages() > 1;
  double batch = 0;
  for (BlockArgument argument : loss.getArguments()) {
    Attribute role = getRole(loss, argument.getArgNumber());
    if (!isa_and_nonnull<InputAttr, LabelAttr>(role))
      continue;
    double own = getBytesOf(argument.getType()) / rows;
    bool isFirst = argument == layers.front().inputValue;
    // Labels are sharded as results of the last layer may be.
    if (!isFirst || layers.front().isByRow)
      own /= modelSize;
    // It may be converted in a stage before that of the first layer.
    bool isInFirst = stages.empty() ? !isNarrow : stages.front() == 0;
    if (!isPipeline)
      batch += own;
    else if (isFirst && isInFirst)
      bytes.front().held += own;
  }
  if (isPipeline && !stages.empty())
    return getLargestRank(bytes, stages, candidate);
  if (isPipeline)
    return getLargestRank(bytes, candidate);
  for (const LayerBytes &layer : bytes)
    batch += layer.held + layer.sum + layer.input;
  return batch;
}
