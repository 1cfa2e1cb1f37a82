//===- Recompute.cpp - Values computed again in the backward pass ---------===//
//
// Activation checkpointing (Chen et al., arXiv 1604.06174) on the program of
// one device: communication is done and shardings are chosen, so neither
// changes. The backward pass gets clones of the ops whose results it needs and
// the policy does not keep.
//
//===----------------------------------------------------------------------===//

#include "ForwardPass.h"

#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Transforms/EmitMemoryError.h"
#include "shardc/Transforms/Kernels/LayerFit.h"
#include "shardc/Transforms/Kernels/RecomputeLimit.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-recompute"

namespace shardc {
#define GEN_PASS_DEF_RECOMPUTEPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The block of a step whose ops work on rows of the batch: the body of the
/// loop over microbatches, or else the function's.
static Block &getRowsBlock(func::FuncOp function) {
  Block &block = function.getBody().front();
  auto loops = block.getOps<AccumulateOp>();
  return loops.empty() ? block : (*loops.begin()).getBody().front();
}

/// One cut of each group: those with the fewest bytes to keep, and among them
/// those with the least time to repeat what lies between.
static std::vector<Cut> chooseLayers(const ForwardPass &forward) {
  struct Choice {
    int64_t bytes = 0;
    double seconds = 0;
    size_t previous = 0;
    bool operator<(const Choice &other) const {
      return std::tie(bytes, seconds) < std::tie(other.bytes, other.seconds);
    }
  };
  std::vector<std::vector<Cut>> groups = forward.findCuts();
  std::vector<std::vector<Choice>> best;
  for (auto [number, group] : llvm::enumerate(groups)) {
    std::vector<Choice> &choices = best.emplace_back();
    for (const Cut &cut : group) {
      // In front of the first layer are the inputs, which are there anyway.
      std::vector<Choice> ways;
      size_t numBefore = number == 0 ? 1 : groups[number - 1].size();
      for (size_t before = 0; before < numBefore; ++before) {
        int64_t from = number == 0 ? -1 : groups[number - 1][before].position;
        RecomputationCost cost =
            forward.getCost(forward.getOps(from, cut.position, cut.value));
        Choice way = number == 0 ? Choice() : best[number - 1][before];
        way.bytes += cut.bytes + cost.keptBytes;
        way.seconds += cost.seconds;
        way.previous = before;
        ways.push_back(way);
      }
      choices.push_back(*llvm::min_element(ways));
    }
  }
  std::vector<Cut> cuts(groups.size());
  size_t chosen = 0;
  for (size_t number = groups.size(); number-- > 0;) {
    if (number + 1 == groups.size())
      chosen = llvm::min_element(best[number]) - best[number].begin();
    cuts[number] = groups[number][chosen];
    chosen = best[number][chosen].previous;
  }
  return cuts;
}

namespace {

/// The layers of a forward pass, for the policies "layer" and "auto". What lies
/// behind the last cut is needed at once and therefore kept.
class Layers {
public:
  explicit Layers(const ForwardPass &forward)
      : forward(forward), cuts(chooseLayers(forward)) {
    OpSet repeatable(forward.getRepeatable().begin(),
                     forward.getRepeatable().end());
    int64_t from = -1;
    for (const Cut &cut : cuts) {
      LLVM_DEBUG(llvm::dbgs() << "a layer ends with "
                              << describeOp(cut.value.getDefiningOp()) << ", "
                              << cut.bytes << " bytes\n");
      inner.push_back(forward.getOps(from, cut.position, cut.value));
      ChainLayer &layer = chain.emplace_back();
      layer.outputBytes = cut.bytes;
      layer.innerBytes = forward.getHeldBytes(inner.back());
      layer.repeatSeconds = forward.getCost(inner.back()).seconds;
      layer.canDropOutput = repeatable.contains(cut.value.getDefiningOp());
      from = cut.position;
    }
    // With the next layer, which needs the output.
    for (size_t index = 0; index + 1 < chain.size(); ++index) {
      OpSet both = inner[index];
      both.insert(cuts[index].value.getDefiningOp());
      both.insert(inner[index + 1].begin(), inner[index + 1].end());
      if (chain[index].canDropOutput)
        chain[index].outputSeconds = std::max(
            0.0, forward.getCost(both).seconds - chain[index].repeatSeconds -
                     chain[index + 1].repeatSeconds);
    }
  }

  const std::vector<ChainLayer> &getChain() const { return chain; }

  /// The ops whose results are dropped by `choices`, one for each layer.
  OpSet getDropped(const LayerChoices &choices) const {
    OpSet dropped;
    for (auto [index, choice] : llvm::enumerate(choices)) {
      if (choice != LayerChoice::Keep)
        dropped.insert(inner[index].begin(), inner[index].end());
      if (choice == LayerChoice::Join)
        dropped.insert(cuts[index - 1].value.getDefiningOp());
    }
    return dropped;
  }

private:
  const ForwardPass &forward;
  std::vector<Cut> cuts;
  /// By layer its ops but that of the output.
  std::vector<OpSet> inner;
  std::vector<ChainLayer> chain;
};

} // namespace

/// The stages whose forward task is followed by the backward task of the same
/// microbatch, always: to drop anything in between would gain nothing.
static llvm::DenseSet<int64_t>
findStagesThatHoldNothing(const PipelineSchedule &schedule) {
  llvm::DenseSet<int64_t> found;
  for (int stage = 0; stage < schedule.getNumStages(); ++stage)
    found.insert(stage);
  for (const auto &tasks : schedule.ranks)
    for (size_t place = 0; place < tasks.size(); ++place) {
      const PipelineTask &task = tasks[place];
      if (task.kind != TaskKind::Forward)
        continue;
      bool isFollowed = place + 1 < tasks.size() &&
                        tasks[place + 1].stage == task.stage &&
                        tasks[place + 1].microbatch == task.microbatch &&
                        tasks[place + 1].kind != TaskKind::Forward;
      if (!isFollowed)
        found.erase(task.stage);
    }
  return found;
}

/// The results to drop by the policy "stage": all but what stages receive.
static OpSet dropInsideStages(const ForwardPass &forward,
                              const PipelineSchedule &schedule) {
  llvm::DenseSet<int64_t> holdNothing = findStagesThatHoldNothing(schedule);
  OpSet dropped;
  for (Operation *op : forward.getRepeatable()) {
    auto stage = op->getAttrOfType<IntegerAttr>(stageAttrName);
    if (!stage || !holdNothing.contains(stage.getInt()))
      dropped.insert(op);
  }
  return dropped;
}

namespace {

struct RecomputePass : shardc::impl::RecomputePassBase<RecomputePass> {
  using RecomputePassBase::RecomputePassBase;
  RecomputePass(const RecomputePassOptions &options, RecomputeLimit limit)
      : RecomputePassBase(options), limit(std::move(limit)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(checkInputPhase(*this, module, ModulePhase::Partition,
                               ModulePhase::Partition)))
      return signalPassFailure();
    auto policy = module->getAttrOfType<StringAttr>(recomputeAttrName);
    StringRef name = policy ? policy.getValue() : "none";
    if (name == "none" && choices.empty())
      return;
    if (failed(run(module, name)))
      signalPassFailure();
  }

private:
  RecomputeLimit limit;

  LogicalResult run(ModuleOp module, StringRef policy) {
    FailureOr<MeshOp> mesh = getMesh(module);
    if (failed(mesh))
      return failure();
    llvm::Expected<Machine> loaded = loadMachineFor(*mesh, machine);
    if (!loaded)
      return module.emitError("machine: ")
             << llvm::toString(loaded.takeError());
    // For reports, and for "auto".
    bool measures = limit.measure && (!limit.isTrial || limit.bytes > 0);
    MeasuredPlan without;
    if (measures) {
      FailureOr<MeasuredPlan> measured = measure(module);
      if (failed(measured))
        return failure();
      without = *measured;
    }
    if (failed(apply(module, policy, *loaded, without)))
      return failure();
    if (measures)
      module->setAttr(
          bytesWithoutAttrName,
          DenseI64ArrayAttr::get(&getContext(), without.arenaBytes));
    return success();
  }

  LogicalResult apply(ModuleOp module, StringRef policy, const Machine &loaded,
                      const MeasuredPlan &without) {
    if (!choices.empty())
      return repeatAsAsked(module, loaded);
    if (policy == "stage") {
      // A pipeline of one stage has been removed: nothing waits for others.
      if (!module->hasAttr(pipelineAttrName))
        return success();
      FailureOr<PipelineSchedule> schedule = getPipelineSchedule(module);
      if (failed(schedule))
        return failure();
      forEachStep(module, loaded, [&](Block &block, ForwardPass &forward) {
        recompute(block, forward, dropInsideStages(forward, *schedule));
      });
      return success();
    }
    if (policy == "auto" && limit.bytes > 0)
      return fit(module, loaded, without);
    if (policy == "auto" && !limit.isTrial)
      return module.emitError("recompute: \"auto\" chooses by the memory of a "
                              "device: expected --device-memory=BYTES");
    repeat(module, loaded, [](const std::vector<ChainLayer> &chain) {
      return LayerChoices(chain.size(), LayerChoice::Repeat);
    });
    return success();
  }

  /// Calls `callback` for the block of each step that has a backward pass.
  static void
  forEachStep(ModuleOp module, const Machine &machine,
              llvm::function_ref<void(Block &, ForwardPass &)> callback) {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      Block &block = getRowsBlock(function);
      ForwardPass forward(block, machine);
      if (forward.hasBackwardPass())
        callback(block, forward);
    }
  }

  /// Makes the choice for each step of `module`.
  static void
  repeat(ModuleOp module, const Machine &machine,
         llvm::function_ref<LayerChoices(const std::vector<ChainLayer> &)>
             choose) {
    forEachStep(module, machine, [&](Block &block, ForwardPass &forward) {
      Layers layers(forward);
      LayerChoices choices = choose(layers.getChain());
      LLVM_DEBUG(llvm::dbgs() << "choice " << toString(choices) << '\n');
      recompute(block, forward, layers.getDropped(choices));
    });
  }

  /// Makes the choice that the option `choices` asks for.
  LogicalResult repeatAsAsked(ModuleOp module, const Machine &machine) {
    LayerChoices asked;
    for (char letter : choices.getValue()) {
      if (letter != 'k' && letter != 'r' && letter != 'j')
        return module.emitError("choices: expected letters k, r and j, got '")
               << choices.getValue() << "'";
      asked.push_back(LayerChoice(letter));
    }
    LogicalResult result = success();
    repeat(module, machine, [&](const std::vector<ChainLayer> &chain) {
      if (areValid(chain, asked))
        return asked;
      if (asked.size() != chain.size())
        result = module.emitError("choices: expected ")
                 << chain.size() << " letters, one for each layer, got '"
                 << choices.getValue() << "'";
      else
        result = module.emitError("choices: '")
                 << choices.getValue()
                 << "' joins a layer that cannot be joined";
      return LayerChoices(chain.size(), LayerChoice::Keep);
    });
    return result;
  }

  /// Measures `module` without recomputation, after `change`.
  FailureOr<MeasuredPlan> measure(
      ModuleOp module,
      llvm::function_ref<void(ModuleOp)> change = [](ModuleOp) {}) {
    OwningOpRef<ModuleOp> copy = module.clone();
    (*copy)->removeAttr(recomputeAttrName);
    change(*copy);
    llvm::Expected<MeasuredPlan> plan = limit.measure(*copy);
    if (!plan)
      return LogicalResult(
          module.emitError("recompute: the memory that a plan needs is not "
                           "known: ")
          << llvm::toString(plan.takeError()));
    return *plan;
  }

  /// The policy "auto": of the choices that fit the limit the one of least
  /// estimated time. `without` is the plan that keeps everything.
  LogicalResult fit(ModuleOp module, const Machine &machine,
                    const MeasuredPlan &without) {
    if (without.arenaBytes.empty())
      return module.emitError("recompute: nobody here compiles plans on trial");
    int64_t bytes = without.arenaBytes.front();
    if (bytes <= limit.bytes)
      return success();
    std::vector<ChainLayer> chain;
    forEachStep(module, machine, [&](Block &, ForwardPass &forward) {
      chain = Layers(forward).getChain();
    });
    LayerFit search(chain, limit.bytes, bytes);
    while (std::optional<LayerChoices> next = search.getNext()) {
      FailureOr<MeasuredPlan> plan = measure(module, [&](ModuleOp copy) {
        repeat(copy, machine,
               [&](const std::vector<ChainLayer> &) { return *next; });
      });
      if (failed(plan))
        return failure();
      LLVM_DEBUG(llvm::dbgs() << "choice " << toString(*next) << ": "
                              << plan->arenaBytes.front() << " bytes, "
                              << plan->seconds << " s\n");
      search.add(*next, plan->arenaBytes.front(), plan->seconds);
    }
    if (!search.getBest())
      return emitMemoryError(module)
             << "recompute: no choice of the values to keep fits in "
             << limit.bytes << " bytes: the least found needs "
             << search.getLeastBytes();
    repeat(module, machine,
           [&](const std::vector<ChainLayer> &) { return *search.getBest(); });
    return success();
  }
};

} // namespace

std::unique_ptr<Pass> shardc::createRecomputePass(RecomputePassOptions options,
                                                  RecomputeLimit limit) {
  return std::make_unique<RecomputePass>(options, std::move(limit));
}
