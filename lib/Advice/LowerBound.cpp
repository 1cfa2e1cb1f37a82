//===- LowerBound.cpp - What no plan of a candidate is below --------------===//

#include "shardc/Advice/LowerBound.h"

#include "Layers.h"
#include "MemoryBound.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Models/AnnotateStrategy.h"
#include "shardc/PipelineSchedules/SimulateSchedule.h"
#include "shardc/Report/TimeEstimate.h"

#include <cmath>
#include <numeric>
#include <utility>

using namespace mlir;
using namespace shardc;

/// Whether `costs` divide into `parts` runs of neighbours, none above `most`.
static bool canDivide(ArrayRef<double> costs, int64_t parts, double most) {
  double sum = 0;
  for (double cost : costs) {
    if (cost > most)
      return false;
    sum += cost;
    if (sum > most) {
      sum = cost;
      if (--parts == 0)
        return false;
    }
  }
  return true;
}

/// The work of the rank that has most of the layers with these `costs`, however
/// `ranks` ranks share them: in runs of neighbours, or in any way.
static double getLargestShare(std::vector<double> costs, int64_t ranks,
                              bool inRuns) {
  double all = std::accumulate(costs.begin(), costs.end(), 0.0);
  if (inRuns) {
    double low = 0, high = all;
    for (int i = 0; i < 40; ++i) {
      double middle = (low + high) / 2;
      (canDivide(costs, ranks, middle) ? high : low) = middle;
    }
    return low;
  }
  // A rank has at least so many; these at the least.
  llvm::sort(costs);
  size_t most = (costs.size() + ranks - 1) / ranks;
  return std::max(all / static_cast<double>(ranks),
                  std::accumulate(costs.begin(), costs.begin() + most, 0.0));
}

/// What gathers of weights for each microbatch send, in elements, and the
/// number of them: those for the forward pass, and those for gradients of
/// inputs, but for the last layer, which can use the same.
static std::pair<double, double> getGathers(ArrayRef<Layer> layers,
                                            const Candidate &candidate) {
  Strategy strategy = candidate.getStrategy();
  double elements = 0, number = 0;
  if (!candidate.regather || strategy.parameterAxis.empty())
    return {0, 0};
  llvm::DenseSet<Value> weights;
  for (const Layer &layer : layers) {
    // The first layer's weight is gathered once.
    if (!layer.hasInputGradient || !weights.insert(layer.argument).second)
      continue;
    double times =
        candidate.microbatches * (&layer == &layers.back() ? 1.0 : 2.0);
    elements += times * layer.weight;
    number += times;
  }
  return {elements, number};
}

/// The rate of the type that multiplies fastest.
static double getGemmRate(const Machine &machine, bool isNarrow) {
  return std::max(machine.getMatmulFlopsPerSecond(ComputeType::F32),
                  isNarrow ? machine.getMatmulFlopsPerSecond(ComputeType::BF16)
                           : 0);
}

namespace {

/// Seconds of a device, for all microbatches.
struct LayerSeconds {
  /// The forward pass and gradients of inputs; gradients of weights; the sums
  /// of tensor parallelism.
  double rows = 0, weights = 0, sums = 0;
  /// Of `rows`, the forward pass.
  double forward = 0;

  double getAll() const { return rows + weights + sums; }
};

/// The seconds of layers on a device that has all of the stage they are in.
class LayerModel {
public:
  LayerModel(const ModelFacts &facts, const Candidate &candidate,
             const Machine &machine, bool isNarrow, double modelSize,
             double devicesOfStage)
      : candidate(candidate), strategy(candidate.getStrategy()),
        machine(machine), elementBytes(isNarrow ? 2 : 4), modelSize(modelSize),
        rows(candidate.getRowShards()) {
    double rowsPerShard = std::ceil(facts.batchSize / rows);
    padding = rowsPerShard * rows / facts.batchSize;
    secondsPerFlop = padding / devicesOfStage / getGemmRate(machine, isNarrow);
  }

  LayerSeconds getSeconds(const Layer &layer) const {
    LayerSeconds seconds;
    double once = getForwardSeconds(layer);
    seconds.rows = (layer.hasInputGradient ? 2 : 1) * once;
    seconds.forward = once;
    double microbatches = candidate.microbatches;
    // Sums over microbatches are read and written in the parameter's type.
    double weightBytes = microbatches > 1 ? (2 * microbatches - 1) *
                                                layer.weightBytes / layer.weight
                                          : elementBytes;
    seconds.weights =
        layer.getForwardFlops() * secondsPerFlop +
        (getRowBytes(layer) + layer.weight / modelSize * weightBytes) /
            machine.memoryBytesPerSecond;
    if (modelSize > 1 && layer.sumSteps > 0) {
      const Link &link = machine.getLink(strategy.modelAxis);
      seconds.sums = (modelSize - 1) / modelSize * layer.sumElements * padding /
                         rows * elementBytes / link.bytesPerSecond +
                     microbatches * layer.sumSteps *
                         std::ceil(std::log2(modelSize)) * link.latencySeconds;
    }
    return seconds;
  }

  /// One of the three GEMMs of a layer; the others take no less.
  double getForwardSeconds(const Layer &layer) const {
    return layer.getForwardFlops() * secondsPerFlop +
           (getRowBytes(layer) +
            candidate.microbatches * layer.weight / modelSize * elementBytes) /
               machine.memoryBytesPerSecond;
  }

  double getSecondsPerFlop() const { return secondsPerFlop; }

  /// Whether the policy `stage` may repeat the GEMM of `layer`: results that
  /// are summed up are kept.
  bool repeats(const Layer &layer) const {
    return modelSize == 1 || !layer.isByRow;
  }

private:
  /// Of the rows that a GEMM reads and writes.
  double getRowBytes(const Layer &layer) const {
    return (layer.input / (layer.isByRow ? modelSize : 1) +
            layer.result / (layer.isByRow ? 1 : modelSize)) /
           rows * elementBytes;
  }

  const Candidate &candidate;
  Strategy strategy;
  const Machine &machine;
  double elementBytes, modelSize, rows, padding = 1, secondsPerFlop = 0;
};

} // namespace

/// What a device of the average stage repeats of the forward pass with the
/// policy `stage`, which keeps the last result of each.
static double getRepeatedSeconds(ArrayRef<Layer> layers,
                                 const Candidate &candidate,
                                 const LayerModel &model) {
  if (candidate.recompute != "stage")
    return 0;
  std::vector<double> repeated;
  for (const Layer &layer : layers)
    if (model.repeats(layer))
      repeated.push_back(model.getForwardSeconds(layer));
  auto stages =
      static_cast<size_t>(candidate.getStages() * candidate.virtualStages);
  llvm::sort(repeated);
  repeated.resize(repeated.size() - std::min(repeated.size(), stages));
  return std::accumulate(repeated.begin(), repeated.end(), 0.0) /
         static_cast<double>(candidate.getStages());
}

/// The makespan of the tasks of a pipeline whose layers have `stages`.
template <typename GetSend>
static double
getScheduledSeconds(ArrayRef<Layer> layers, ArrayRef<LayerSeconds> seconds,
                    ArrayRef<int64_t> stages, const Candidate &candidate,
                    const LayerModel &model, GetSend getSend) {
  llvm::Expected<PipelineSchedule> schedule =
      makePipelineSchedule(candidate.schedule, candidate.getStages(),
                           candidate.virtualStages, candidate.microbatches);
  if (!schedule) {
    llvm::consumeError(schedule.takeError());
    return 0;
  }
  std::vector<StageTimes> times(schedule->getNumStages());
  // What a stage repeats, but for the largest of its results.
  std::vector<double> repeated(times.size(), 0), largest = repeated;
  for (size_t i = 0; i < layers.size(); ++i) {
    StageTimes &own = times[stages[i]];
    bool isFirst = i == 0 || stages[i - 1] != stages[i];
    bool isLast = i + 1 == layers.size() || stages[i + 1] != stages[i];
    own.forward += seconds[i].forward;
    own.inputGradient += seconds[i].rows - seconds[i].forward;
    own.weightGradient += seconds[i].weights;
    // One half of a sum at the border may belong to the stage beyond.
    if (layers[i].isByRow)
      own.forward += seconds[i].sums / (isLast ? 2 : 1);
    else
      own.inputGradient += seconds[i].sums / (isFirst ? 2 : 1);
    if (candidate.recompute == "stage" && model.repeats(layers[i])) {
      repeated[stages[i]] += seconds[i].forward;
      largest[stages[i]] = std::max(largest[stages[i]], seconds[i].forward);
    }
    if (i > 0 && stages[i] == stages[i - 1] + 1) {
      times[stages[i - 1]].sendForward = getSend(layers[i - 1], layers[i]);
      own.sendBackward = times[stages[i - 1]].sendForward;
    }
  }
  for (size_t stage = 0; stage < times.size(); ++stage) {
    StageTimes &own = times[stage];
    own.inputGradient += repeated[stage] - largest[stage];
    // Nothing waits for gradients of the stage of the first layer.
    if (static_cast<int64_t>(stage) <= stages.front())
      own.weightGradient += std::exchange(own.inputGradient, 0);
    for (double *one : {&own.forward, &own.inputGradient, &own.weightGradient})
      *one /= candidate.microbatches;
  }
  return simulateSchedule(*schedule, times).makespan;
}

std::vector<int64_t> shardc::getStagesOfLayers(ModuleOp imported) {
  func::FuncOp loss = getLoss(imported);
  std::vector<int64_t> stages;
  for (Operation &op : loss.getBody().front()) {
    if (!isa<LinearOp, DotGeneralOp>(op))
      continue;
    // GEMMs of bf16 have a copy of the parameter.
    Value weight = op.getOperand(1);
    while (auto convert = weight.getDefiningOp<ConvertOp>())
      weight = convert.getOperand();
    auto argument = dyn_cast<BlockArgument>(weight);
    if (!argument ||
        !isa_and_nonnull<ParameterAttr>(getRole(loss, argument.getArgNumber())))
      continue;
    auto stage = op.getAttrOfType<IntegerAttr>(stageAttrName);
    if (!stage || (!stages.empty() && stage.getInt() < stages.back()))
      return {};
    stages.push_back(stage.getInt());
  }
  return stages;
}

LowerBound shardc::getLowerBound(ModuleOp source, const ModelFacts &facts,
                                 const Candidate &candidate,
                                 const Machine &given, bool isNarrow,
                                 ArrayRef<int64_t> stagesOfLayers) {
  const Machine machine = given.withFastestLinks();
  LowerBound bound;
  MeshOp mesh = *source.getOps<MeshOp>().begin();
  double devices = mesh.getNumDevices();
  // GEMMs of bf16 read and write, and devices send, half of the bytes.
  double elementBytes = isNarrow ? 2 : 4;
  double memoryRate = machine.memoryBytesPerSecond;
  func::FuncOp loss = getLoss(source);
  std::vector<Layer> layers = listLayers(loss);
  // A GEMM may have a parameter in a way that makes it no layer.
  if (stagesOfLayers.size() != layers.size())
    stagesOfLayers = {};
  if (candidate.isCheapest()) {
    double weights = 0;
    for (const Layer &layer : layers)
      weights += layer.weight * (layer.hasInputGradient ? 2 : 1);
    bound.stateBytes = (facts.parameterBytes + facts.stateBytes) / devices;
    bound.memoryBytes = bound.stateBytes;
    bound.seconds =
        facts.matmulFlops / devices / getGemmRate(machine, isNarrow);
    // Not where several devices read the same from a cache.
    if (!machine.computer)
      bound.seconds += weights * elementBytes / devices / memoryRate;
    return bound;
  }
  Strategy strategy = candidate.getStrategy();
  // Of a stage, which has its part of the layers.
  double stages = candidate.getStages(), stateBytes = 0;
  // By the bytes that a sum of gradients has.
  double gradientElements = 0, gradientBytes = 0;
  for (BlockArgument argument : loss.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!isa_and_nonnull<ParameterAttr>(getRole(loss, index)))
      continue;
    double bytes = getBytesOf(argument.getType()) / stages;
    auto get = [&](StringRef name) {
      return loss.getArgAttrOfType<ShardingAttr>(index, name);
    };
    ShardingAttr storage = get(shardingAttrName);
    ShardingAttr states = get(stateShardingAttrName);
    bound.stateBytes += bytes / getShards(mesh, storage);
    stateBytes += bytes * facts.getStatesPerParameter() /
                  getShards(mesh, states ? states : storage);
    double modelShards = getShardsAlong(mesh, storage, strategy.modelAxis);
    double elements = getElements(argument) / stages / modelShards;
    gradientElements += elements;
    gradientBytes += candidate.microbatches > 1 ? bytes / modelShards
                                                : elements * elementBytes;
  }
  bound.stateBytes += stateBytes;
  double rows = candidate.getRowShards();
  double modelSize =
      strategy.modelAxis.empty() ? 1 : mesh.getAxisSize(strategy.modelAxis);
  bound.memoryBytes = std::max(
      bound.stateBytes, getMemoryBound(loss, layers, facts, candidate, isNarrow,
                                       modelSize, stagesOfLayers));

  // The work of a device; by layer what comes to one that has it.
  LayerModel model(facts, candidate, machine, isNarrow, modelSize,
                   devices / stages);
  LayerSeconds work;
  std::vector<double> costs;
  std::vector<LayerSeconds> secondsOfLayers;
  for (const Layer &layer : layers) {
    LayerSeconds seconds = model.getSeconds(layer);
    secondsOfLayers.push_back(seconds);
    work.rows += seconds.rows / stages;
    work.weights += seconds.weights / stages;
    work.sums += seconds.sums / stages;
    costs.push_back(seconds.getAll());
  }
  // GEMMs of other factors than weights.
  double listed = 0;
  for (const Layer &layer : layers)
    listed += layer.getFlops();
  work.rows += std::max(0.0, facts.matmulFlops - listed) *
               model.getSecondsPerFlop() / stages;
  work.rows += getRepeatedSeconds(layers, candidate, model);
  // The states are read and written.
  double update = 2 * stateBytes / memoryRate;
  // All but a part of each sum has to come from another device, and go there;
  // and so have gathered weights.
  double gradients = 0, gathers = 0;
  if (rows > 1) {
    double fastest = 0,
           latency = machine.getLink(strategy.rowAxes[0]).latencySeconds;
    for (const std::string &axis : strategy.rowAxes) {
      fastest = std::max(fastest, machine.getLink(axis).bytesPerSecond);
      latency = std::min(latency, machine.getLink(axis).latencySeconds);
    }
    gradients = (rows - 1) / rows *
                (gradientBytes + gradientElements * elementBytes) / fastest;
    auto [elements, number] = getGathers(layers, candidate);
    if (number > 0) {
      double shards = mesh.getAxisSize(strategy.parameterAxis);
      gathers = ((shards - 1) / shards * elements / modelSize * elementBytes /
                     machine.getLink(strategy.parameterAxis).bytesPerSecond +
                 number * latency) /
                stages;
    }
  }
  if (stages > 1) {
    double all = work.getAll() + gathers;
    // The first rank waits longest; a rank in the middle half as long. Where
    // gradients of weights fill gaps, it waits for the other two parts of a
    // task, or the longer of them.
    double bubble = candidate.getScheduleBubble() * all;
    if (candidate.schedule == "zero-bubble")
      bubble = (stages - 1) / candidate.microbatches *
               (work.rows + work.sums + gathers) / 2;
    bound.seconds = std::max({all + bubble, all + bubble / 2 + gradients,
                              getLargestShare(costs, candidate.getStages(),
                                              candidate.virtualStages == 1)}) +
                    update;
    if (!stagesOfLayers.empty()) {
      const Link &link = machine.getLink(strategy.pipelineAxis);
      auto getSend = [&](const Layer &layer, const Layer &next) {
        return link.latencySeconds +
               std::min(layer.result, next.input) / rows / modelSize *
                   elementBytes / candidate.microbatches / link.bytesPerSecond;
      };
      bound.seconds =
          std::max(bound.seconds,
                   getScheduledSeconds(layers, secondsOfLayers, stagesOfLayers,
                                       candidate, model, getSend));
    }
  } else if (machine.isShared) {
    bound.seconds = work.getAll() + update + gradients + gathers;
  } else {
    bound.seconds = std::max(work.rows + work.weights + update,
                             work.sums + gradients + gathers);
  }
  // What devices have in common is computed once, and sums may cost nothing.
  if (machine.computer)
    bound.seconds =
        facts.matmulFlops / devices / getGemmRate(machine, isNarrow);
  return bound;
}

/// The GEMMs in `op`, with what they read and write, and its collectives.
static double getLeastSeconds(const Machine &machine, Operation *op,
                              const MemoryTraffic &traffic) {
  double seconds = 0;
  op->walk([&](Operation *inner) {
    OpWork work = getOpWork(inner, traffic);
    if (work.isGemm)
      seconds +=
          getComputeSeconds(machine, work) + getMemorySeconds(machine, work);
    else if (!isa<TransferOp>(inner))
      seconds += getCollectiveSeconds(machine, inner);
  });
  return seconds;
}

double shardc::getTaskBound(ModuleOp module, const Candidate &candidate,
                            const Machine &machine) {
  FailureOr<std::vector<int>> rankOfStage = getRanksOfStages(module);
  auto step = module.lookupSymbol<func::FuncOp>("train_step");
  // On a measured computer ranks do not run at the same time.
  if (failed(rankOfStage) || rankOfStage->empty() || !step || machine.computer)
    return 0;
  MemoryTraffic traffic(step);
  std::vector<double> tasks(candidate.getStages(), 0), others = tasks;
  double weights = 0;
  auto add = [&](Operation &op, double times, std::vector<double> &seconds) {
    auto stage = op.getAttrOfType<IntegerAttr>(stageAttrName);
    if (!stage)
      return;
    double own = times * getLeastSeconds(machine, &op, traffic);
    seconds[(*rankOfStage)[stage.getInt()]] += own;
    if (auto task = op.getAttrOfType<StringAttr>(taskAttrName);
        task && task.getValue() == "W")
      weights += own;
  };
  for (Operation &op : step.getBody().front())
    if (auto loop = dyn_cast<AccumulateOp>(op)) {
      for (Operation &inner : loop.getBody().front())
        add(inner, loop.getCount(), tasks);
    } else {
      add(op, 1, others);
    }
  double most = 0, all = 0, allOthers = 0;
  for (auto [task, other] : llvm::zip_equal(tasks, others)) {
    most = std::max(most, task + other);
    all += task;
    allOthers += other;
  }
  double ranks = candidate.getStages();
  double bubble = candidate.getScheduleBubble() * all;
  if (candidate.schedule == "zero-bubble")
    bubble = (ranks - 1) / candidate.microbatches * (all - weights) / 2;
  return std::max({most, (all + bubble) / ranks,
                   (all + bubble / 2 + allOthers) / ranks}) *
         (1 - 1e-9);
}
