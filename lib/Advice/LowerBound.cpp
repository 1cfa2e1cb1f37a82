//===- LowerBound.cpp - What no plan of a candidate is below --------------===//

#include "shardc/Advice/LowerBound.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Models/AnnotateStrategy.h"
#include "shardc/Models/LayerRoles.h"
#include "shardc/Report/TimeEstimate.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace shardc;

static double getElements(Value value) {
  return static_cast<double>(getTensorType(value).getNumElements());
}

static double getBytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return static_cast<double>(tensor.getNumElements() *
                             getElementBytes(tensor.getElementType()));
}

namespace {

/// A GEMM with a parameter as second factor.
struct Layer {
  /// Elements of the whole input, weight and result.
  double input, weight, result;
  /// Whether the gradient of its input is computed.
  bool hasInputGradient;
  /// Whether tensor parallelism shards it by row; else by column.
  bool isByRow;
  /// Elements that devices along the axis of tensor parallelism have to sum up,
  /// at the least, once for each reduce-scatter and each all-gather, and the
  /// number of these.
  double sumElements = 0, sumSteps = 0;

  /// M·N·K: a matrix of M x K times one of K x N has this squared for the
  /// product of the sizes of all three.
  double getFlops() const {
    return (hasInputGradient ? 6 : 4) * std::sqrt(input * weight * result);
  }
};

/// The layers of a loss function, in order.
class Layers {
public:
  explicit Layers(func::FuncOp loss) : roles(loss) {
    for (BlockArgument argument : loss.getArguments())
      if (isa_and_nonnull<ParameterAttr>(
              getRole(loss, argument.getArgNumber())))
        trained.insert(argument);
    for (Operation &op : loss.getBody().front().without_terminator()) {
      visit(&op);
      if (llvm::any_of(op.getOperands(), [&](Value operand) {
            return trained.contains(operand);
          }))
        trained.insert(op.result_begin(), op.result_end());
    }
    for (size_t number : byRow) {
      Layer &layer = list[number];
      double times = gathered.contains(number) ? 2 : 1;
      layer.sumElements += times * layer.result;
      layer.sumSteps += times;
    }
  }

  std::vector<Layer> list;

private:
  void visit(Operation *op) {
    auto weight = op->getNumOperands() > 1 && isa<LinearOp, DotGeneralOp>(op)
                      ? dyn_cast<BlockArgument>(op->getOperand(1))
                      : BlockArgument();
    std::optional<int64_t> role = weight ? roles.lookup(weight) : std::nullopt;
    if (!role) {
      if (op->getNumOperands() == 1 && op->getNumResults() == 1)
        if (auto summed = summedBy.find(op->getOperand(0));
            summed != summedBy.end())
          summedBy.try_emplace(op->getResult(0), size_t(summed->second));
      return;
    }
    Value input = op->getOperand(0), result = op->getResult(0);
    size_t number = list.size();
    list.push_back({getElements(input), getElements(weight),
                    getElements(result), trained.contains(input),
                    /*isByRow=*/*role == 1});
    if (*role == 1) {
      // A sum that is added to another may wait for it.
      if (llvm::any_of(result.getUsers(),
                       [](Operation *user) { return isa<AddOp>(user); }))
        return;
      byRow.push_back(number);
      summedBy[result] = number;
    } else if (auto summed = summedBy.find(input); summed != summedBy.end()) {
      // Its input is whole again, and so is the gradient of that.
      gathered.insert(summed->second);
      if (inputs.insert(input).second) {
        list[number].sumElements += 2 * getElements(input);
        list[number].sumSteps += 2;
      }
    }
  }

  LayerRoles roles;
  /// Values that depend on a parameter.
  llvm::DenseSet<Value> trained;
  /// The layer by row whose sum a value is made of, one by one elements.
  llvm::DenseMap<Value, size_t> summedBy;
  llvm::DenseSet<size_t> gathered;
  llvm::DenseSet<Value> inputs;
  std::vector<size_t> byRow;
};

} // namespace

/// The number of devices that divide a tensor annotated by `sharding`.
static double getShards(MeshOp mesh, ShardingAttr sharding) {
  double shards = 1;
  for (int64_t dim = 0; sharding && dim < sharding.getRank(); ++dim)
    shards *= mesh.getNumShards(sharding.getAxes(dim));
  return shards;
}

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

LowerBound shardc::getLowerBound(ModuleOp source, const ModelFacts &facts,
                                 const Candidate &candidate,
                                 const Machine &machine, bool isNarrow) {
  LowerBound bound;
  MeshOp mesh = *source.getOps<MeshOp>().begin();
  double devices = mesh.getNumDevices();
  // GEMMs of bf16 read and write, and devices send, half of the bytes.
  double elementBytes = isNarrow ? 2 : 4;
  // The rate of the type that multiplies fastest.
  double rate = std::max(
      machine.getMatmulFlopsPerSecond(ComputeType::F32),
      isNarrow ? machine.getMatmulFlopsPerSecond(ComputeType::BF16) : 0);
  double memoryRate = machine.memoryBytesPerSecond;
  func::FuncOp loss = getLoss(source);
  std::vector<Layer> layers = Layers(loss).list;
  if (candidate.isCheapest()) {
    double weights = 0;
    for (const Layer &layer : layers)
      weights += layer.weight * (layer.hasInputGradient ? 2 : 1);
    bound.memoryBytes = (facts.parameterBytes + facts.stateBytes) / devices;
    bound.seconds = facts.matmulFlops / devices / rate +
                    weights * elementBytes / devices / memoryRate;
    return bound;
  }
  Strategy strategy = candidate.getStrategy();
  // Of a stage, which has its part of the layers.
  double stages = candidate.getStages(), stateBytes = 0, gradientElements = 0;
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
    bound.memoryBytes += bytes / getShards(mesh, storage);
    stateBytes += bytes * facts.getStatesPerParameter() /
                  getShards(mesh, states ? states : storage);
    double modelShards = 1;
    for (int64_t dim = 0; storage && dim < storage.getRank(); ++dim)
      for (StringAttr axis : storage.getAxes(dim))
        if (axis.getValue() == strategy.modelAxis)
          modelShards *= mesh.getAxisSize(axis.getValue());
    gradientElements += getElements(argument) / stages / modelShards;
  }
  bound.memoryBytes += stateBytes;
  double rows = candidate.getRowShards();
  double rowsPerShard = std::ceil(facts.batchSize / rows);
  double padding = rowsPerShard * rows / facts.batchSize;
  double modelSize =
      strategy.modelAxis.empty() ? 1 : mesh.getAxisSize(strategy.modelAxis);
  double microbatches = candidate.microbatches;

  // The work of a device, and its sums of tensor parallelism; by layer what
  // comes to a device that has it.
  double perFlop = padding / (devices / stages) / rate;
  double work = facts.matmulFlops * perFlop / stages, sums = 0;
  std::vector<double> costs;
  for (const Layer &layer : layers) {
    double input = layer.input / rows / (layer.isByRow ? modelSize : 1);
    double result = layer.result / rows / (layer.isByRow ? 1 : modelSize);
    double weight = microbatches * layer.weight / modelSize;
    double times = layer.hasInputGradient ? 3 : 2;
    double memory =
        times * (input + result + weight) * elementBytes / memoryRate;
    double ownSums = 0;
    if (modelSize > 1 && layer.sumSteps > 0) {
      const Link &link = machine.getLink(strategy.modelAxis);
      ownSums = (modelSize - 1) / modelSize * layer.sumElements * rowsPerShard /
                    facts.batchSize * elementBytes / link.bytesPerSecond +
                microbatches * layer.sumSteps *
                    std::ceil(std::log2(modelSize)) * link.latencySeconds;
    }
    work += memory / stages;
    sums += ownSums / stages;
    costs.push_back(layer.getFlops() * perFlop + memory + ownSums);
  }
  // The states are read and written.
  double update = 2 * stateBytes / memoryRate;
  // All but a part of each sum has to come from another device, and go there.
  double fastest = 0;
  for (const std::string &axis : strategy.rowAxes)
    fastest = std::max(fastest, machine.getLink(axis).bytesPerSecond);
  double gradients = rows > 1 ? 2 * (rows - 1) / rows * gradientElements *
                                    elementBytes / fastest
                              : 0;
  if (stages > 1) {
    // The first rank waits longest; a rank in the middle half as long.
    double bubble = candidate.getScheduleBubble();
    bound.seconds = std::max({(work + sums) * (1 + bubble),
                              (work + sums) * (1 + bubble / 2) + gradients,
                              getLargestShare(costs, candidate.getStages(),
                                              candidate.virtualStages == 1)}) +
                    update;
  } else if (machine.isShared) {
    bound.seconds = work + sums + update + gradients;
  } else {
    bound.seconds = std::max(work + update, sums + gradients);
  }
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
  if (failed(rankOfStage) || rankOfStage->empty() || !step)
    return 0;
  MemoryTraffic traffic(step);
  std::vector<double> tasks(candidate.getStages(), 0), others = tasks;
  auto add = [&](Operation &op, double times, std::vector<double> &seconds) {
    if (auto stage = op.getAttrOfType<IntegerAttr>(stageAttrName))
      seconds[(*rankOfStage)[stage.getInt()]] +=
          times * getLeastSeconds(machine, &op, traffic);
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
  double bubble = candidate.getScheduleBubble();
  double ranks = candidate.getStages();
  return std::max({most, all / ranks * (1 + bubble),
                   all / ranks * (1 + bubble / 2) + allOthers / ranks}) *
         (1 - 1e-9);
}
