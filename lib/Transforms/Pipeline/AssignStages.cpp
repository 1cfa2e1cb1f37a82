//===- AssignStages.cpp - The stage of every op of a loss -----------------===//
//
// The annotated ops of a loss function fix stages; the others are divided by
// minimum cuts, one for each boundary between stages: fewest bytes of values
// and gradients cross it, and no op is before an operand. Among equal cuts ops
// go to the earlier stage. The cuts are nested, since each contains the one
// before.
//
//===----------------------------------------------------------------------===//

#include "OpTimes.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/PipelineSchedules/FlowNetwork.h"
#include "shardc/PipelineSchedules/ScheduleText.h"
#include "shardc/Transforms/Passes.h"
#include "shardc/Transforms/Pipeline/VerifyPipeline.h"

#include <cmath>
#include <limits>

namespace shardc {
#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Completes the stages of one loss function.
class StageAssigner {
public:
  StageAssigner(func::FuncOp loss, int64_t numStages)
      : loss(loss), numStages(numStages) {
    for (Operation &op : loss.getBody().front().without_terminator()) {
      auto annotated = op.getAttrOfType<IntegerAttr>(stageAttrName);
      ops.push_back({&op, annotated ? annotated.getInt() : -1});
    }
    findTrained();
  }

  void run() {
    for (int64_t boundary = 0; boundary + 1 < numStages; ++boundary)
      cut(boundary);
    Builder builder(loss.getContext());
    for (auto [op, stage] : ops)
      op->setAttr(stageAttrName,
                  builder.getI64IntegerAttr(stage < 0 ? numStages - 1 : stage));
  }

private:
  bool isParameter(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument &&
           isa<ParameterAttr>(getRole(loss, argument.getArgNumber()));
  }

  /// Finds the values with a gradient, nearly enough: those that depend on a
  /// parameter.
  void findTrained() {
    for (BlockArgument argument : loss.getArguments())
      if (isParameter(argument))
        trained.insert(argument);
    for (auto [op, stage] : ops)
      if (llvm::any_of(op->getOperands(), [&](Value operand) {
            return trained.contains(operand);
          }))
        trained.insert(op->result_begin(), op->result_end());
  }

  /// The bytes that cross in a step if `value` does.
  int64_t getBytes(Value value) {
    RankedTensorType type = getTensorType(value);
    int64_t bytes =
        type.getNumElements() * getElementBytes(type.getElementType());
    return trained.contains(value) ? 2 * bytes : bytes;
  }

  /// Gives `boundary` to the ops before it that have no stage.
  void cut(int64_t boundary) {
    FlowNetwork network;
    int source = network.addNode(), sink = network.addNode();
    llvm::DenseMap<Operation *, int> nodes;
    for (auto [op, stage] : ops) {
      int node = nodes[op] = network.addNode();
      if (stage > boundary)
        network.addEdge(node, sink, FlowNetwork::unlimited);
      else if (stage >= 0)
        network.addEdge(source, node, FlowNetwork::unlimited);
    }
    // The loss is a result of the last stage.
    nodes[loss.getBody().front().getTerminator()] = sink;
    /// A value that crosses does so once for all uses behind the boundary.
    auto addValue = [&](Value value, int maker) {
      int crossing = network.addNode();
      network.addEdge(maker, crossing, getBytes(value));
      for (Operation *user : value.getUsers()) {
        network.addEdge(crossing, nodes.lookup(user), FlowNetwork::unlimited);
        network.addEdge(nodes.lookup(user), maker, FlowNetwork::unlimited);
      }
    };
    // A parameter is where it is used first; inputs are wherever they are used.
    for (BlockArgument argument : loss.getArguments())
      if (isParameter(argument))
        addValue(argument, network.addNode());
    for (auto [op, stage] : ops)
      for (Value result : op->getResults())
        addValue(result, nodes.lookup(op));
    std::vector<bool> isBefore = network.cut(source, sink);
    for (auto &[op, stage] : ops)
      if (stage < 0 && isBefore[nodes.lookup(op)])
        stage = boundary;
  }

  func::FuncOp loss;
  int64_t numStages;
  /// Each with its stage, or -1.
  SmallVector<std::pair<Operation *, int64_t>> ops;
  llvm::DenseSet<Value> trained;
};

struct AssignStagesPass : shardc::impl::AssignStagesPassBase<AssignStagesPass> {
  using AssignStagesPassBase::AssignStagesPassBase;
  AssignStagesPass(AssignStagesPassOptions options, RankLimit limit,
                   StageCutCache *cuts)
      : AssignStagesPassBase(options), limit(std::move(limit)), cuts(cuts) {}

  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Import,
                               ModulePhase::Import)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
    auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
    if (!pipeline || !training)
      return;
    FailureOr<MeshOp> mesh = getMesh(module);
    auto loss = module.lookupSymbol<func::FuncOp>(training.getLoss());
    // Without `import` before it, nothing has been checked.
    if (failed(mesh) || !loss || failed(verifyPipeline(loss, *mesh)))
      return signalPassFailure();
    auto isAnnotated = [](Operation *op) { return op->hasAttr(stageAttrName); };
    Block &block = loss.getBody().front();
    int64_t numStages = getPipelineSize(module)->getNumStages();
    if (numStages == 1) {
      module->removeAttr(pipelineAttrName);
      for (Operation &op : block)
        op.removeAttr(stageAttrName);
      return;
    }
    if (llvm::any_of(block, [&](Operation &op) { return isAnnotated(&op); }))
      StageAssigner(loss, numStages).run();
    else if (failed(cutOps(loss, numStages, *mesh)))
      signalPassFailure();
  }

  /// Cuts the list of ops where the step is shortest.
  LogicalResult cutOps(func::FuncOp loss, int64_t numStages, MeshOp mesh) {
    auto ops = loss.getBody().front().without_terminator();
    int64_t numOps = std::distance(ops.begin(), ops.end());
    if (numOps < numStages)
      return loss.emitError("the loss has ")
             << numOps << " ops, too few for " << numStages << " stages";
    llvm::Expected<Machine> loaded = loadMachineFor(mesh, machine);
    if (!loaded)
      return loss.emitError("machine: ") << llvm::toString(loaded.takeError());
    FailureOr<OpCosts> costs = estimateOpCosts(loss, *loaded);
    if (failed(costs))
      return failure();
    PipelineSchedule schedule =
        getScheduleToCutBy(loss->getParentOfType<ModuleOp>());
    if (limit.bytes > 0 && !limit.measure)
      return loss.emitError("stages that fit the memory of a device: nobody "
                            "here compiles plans on trial");
    if (limit.bytes > 0)
      cutWithinLimit(loss, *costs, schedule);
    else
      setStages(loss, cuts ? cuts->find(costs->times, schedule)
                           : findStageCut(costs->times, schedule));
    return success();
  }

  static void setStages(func::FuncOp loss, const StageCut &cut) {
    Builder builder(loss.getContext());
    int64_t stage = 0;
    auto ops = loss.getBody().front().without_terminator();
    for (auto [number, op] : llvm::enumerate(ops)) {
      while (number >= cut[stage])
        ++stage;
      op.setAttr(stageAttrName, builder.getI64IntegerAttr(stage));
    }
  }

  /// Cuts the list of ops where the step is shortest among the cuts whose ranks
  /// need no more memory than `limit`, as their plans tell. If a rank needs too
  /// much, its ops get a limit for the next cut: its share of what they weigh.
  /// More would not fit as long as memory beyond that of the ops is not
  /// negative. If no cut fits, takes the one that needs least.
  void cutWithinLimit(func::FuncOp loss, const OpCosts &costs,
                      const PipelineSchedule &schedule) {
    auto module = loss->getParentOfType<ModuleOp>();
    CutLimits limits;
    // A parameter comes with a gradient and about as much state, and a rank
    // keeps about as many microbatches as there are ranks.
    for (auto [parameter, stash] :
         llvm::zip_equal(costs.parameterBytes, costs.stashBytes))
      limits.weights.push_back(3 * parameter + schedule.getNumRanks() * stash +
                               1);
    limits.most.assign(schedule.getNumRanks(),
                       std::numeric_limits<double>::infinity());
    StageCut best;
    int64_t least = std::numeric_limits<int64_t>::max();
    constexpr int mostTrials = 24;
    for (int trial = 0; trial < mostTrials && least > limit.bytes; ++trial) {
      StageCut cut = findStageCut(costs.times, schedule, limits);
      std::vector<double> weights =
          getRankWeights(limits.weights, cut, schedule);
      if (!std::equal(weights.begin(), weights.end(), limits.most.begin(),
                      std::less_equal<>()))
        break;
      setStages(loss, cut);
      OwningOpRef<ModuleOp> copy = module.clone();
      llvm::Expected<MeasuredPlan> plan = limit.measure(*copy);
      if (!plan) {
        // To compile this cut ends with the same error.
        llvm::consumeError(plan.takeError());
        return;
      }
      if (int64_t most = *llvm::max_element(plan->arenaBytes); most < least) {
        least = most;
        best = cut;
      }
      for (auto [weight, needed, most] :
           llvm::zip_equal(weights, plan->arenaBytes, limits.most))
        if (needed > limit.bytes)
          most = std::nextafter(weight * static_cast<double>(limit.bytes) /
                                    static_cast<double>(needed),
                                0.0);
    }
    setStages(loss, best);
  }

  /// The schedule of the pipeline, which has been verified, with so few
  /// microbatches that a cut is found fast: more only repeat.
  static PipelineSchedule getScheduleToCutBy(ModuleOp module) {
    auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
    int64_t microbatches =
        module->getAttrOfType<TrainingAttr>(trainingAttrName).getMicrobatches();
    auto [ranks, chunks] = *getPipelineSize(module);
    StringRef schedule = pipeline.getSchedule().getValue();
    if (!isScheduleText(schedule))
      microbatches = std::min(microbatches, 4 * ranks);
    return llvm::cantFail(
        getPipelineSchedule(schedule, "schedule", ranks, chunks, microbatches));
  }

  RankLimit limit;
  StageCutCache *cuts = nullptr;
};

} // namespace

std::unique_ptr<Pass>
shardc::createAssignStagesPass(AssignStagesPassOptions options, RankLimit limit,
                               StageCutCache *cuts) {
  return std::make_unique<AssignStagesPass>(std::move(options),
                                            std::move(limit), cuts);
}
