//===- InsertTransfers.cpp - Values that cross between stages -------------===//
//
// Gives every op of a program its stage of the pipeline, and marks each value
// that is made on one stage and used on another by a shardc.transfer. A value
// crosses once for all of its uses on a stage. What a loop over microbatches
// does not change crosses outside of it, once per step: the weights that two
// stages share, and the sums of their gradients.
//
// A sum of scalars of several ranks that stages need, the squares of the global
// norm, has no stage either: an all_reduce forms it on all ranks
// (shardc-complete-stages).
//
// Ops whose operands are on every rank (constants, the step, the batch) have no
// stage: each rank that needs them computes them.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Transforms/Passes.h"

#include <functional>
#include <limits>
#include <map>

namespace shardc {
#define GEN_PASS_DEF_INSERTTRANSFERSPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Of values and ops that every rank computes.
static constexpr int64_t everywhere = -1;

namespace {

/// Rewrites one program.
class TransferInserter {
public:
  /// `homes` has the stages of parameters by name, to which those are added
  /// that no function before has had.
  TransferInserter(func::FuncOp function, ArrayRef<int> rankOfStage,
                   llvm::StringMap<int64_t> &homes)
      : function(function), rankOfStage(rankOfStage), homes(homes),
        builder(function.getContext()) {}

  void run() {
    Block &block = function.getBody().front();
    isEvaluation = llvm::all_of(block.getOps<AccumulateOp>(), [](auto loop) {
      return isPart(loop, Part::Forward);
    });
    placeArguments();
    // Sums are divided before their additions get a transfer.
    for (auto loop : llvm::to_vector(block.getOps<AccumulateOp>())) {
      placeOps(loop.getBody().front());
      divideSums(loop);
    }
    placeOps(block);
    for (BlockArgument argument : block.getArguments())
      transfer(argument);
    function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        transfer(result);
    });
  }

private:
  /// A parameter is at home on the first stage of the train step that uses it,
  /// with its states.
  void placeArguments() {
    for (BlockArgument argument : function.getArguments()) {
      Attribute role = getRole(function, argument.getArgNumber());
      if (!isa_and_nonnull<ParameterAttr>(role))
        continue;
      int64_t home = std::numeric_limits<int64_t>::max();
      for (Operation *user : argument.getUsers())
        if (auto stage = user->getAttrOfType<IntegerAttr>(stageAttrName))
          home = std::min(home, stage.getInt());
      if (home == std::numeric_limits<int64_t>::max())
        home = 0;
      stages[argument] =
          homes.try_emplace(getRoleName(role), home).first->second;
    }
    for (BlockArgument argument : function.getArguments())
      if (auto state = dyn_cast_or_null<StateAttr>(
              getRole(function, argument.getArgNumber()));
          state && state.getParameter())
        stages[argument] = homes.lookup(state.getParameter().getValue());
  }

  int64_t getStage(Value value) const {
    auto found = stages.find(value);
    return found == stages.end() ? everywhere : found->second;
  }

  /// The stage of `op`: its own, or else that of its operands. Where they
  /// differ, an update is on the earliest, with the parameter, and other ops
  /// are on the last.
  int64_t findStage(Operation *op) {
    if (auto own = op->getAttrOfType<IntegerAttr>(stageAttrName))
      return own.getInt();
    int64_t stage = everywhere;
    for (Value operand : op->getOperands()) {
      int64_t other = getStage(operand);
      // The results of an evaluation are with the loss.
      if (isEvaluation && other != everywhere)
        return static_cast<int64_t>(rankOfStage.size()) - 1;
      if (stage == everywhere)
        stage = other;
      else if (other != everywhere)
        stage = isPart(op, Part::Update) ? std::min(stage, other)
                                         : std::max(stage, other);
    }
    return stage;
  }

  /// Whether `op` is a sum over stages, of several ranks.
  bool addsOverRanks(Operation *op) const {
    if (isEvaluation || !addsOverStages(op))
      return false;
    int64_t lhs = getStage(op->getOperand(0)),
            rhs = getStage(op->getOperand(1));
    return lhs == everywhere || rhs == everywhere ||
           rankOfStage[lhs] != rankOfStage[rhs];
  }

  void placeOps(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (auto loop = dyn_cast<AccumulateOp>(op)) {
        for (auto [result, summand] :
             llvm::zip_equal(loop.getResults(), loop.getYield().getOperands()))
          stages[result] = getStage(summand);
        continue;
      }
      int64_t stage = addsOverRanks(&op) ? everywhere : findStage(&op);
      // Without operands of a stage, what it makes is everywhere.
      bool isFree = llvm::all_of(op.getOperands(), [&](Value operand) {
        return getStage(operand) == everywhere;
      });
      if (isFree && isa<ConstantOp>(op))
        stage = everywhere;
      if (stage == everywhere)
        op.removeAttr(stageAttrName);
      else
        op.setAttr(stageAttrName, builder.getI64IntegerAttr(stage));
      for (Value result : op.getResults())
        stages[result] = stage;
    }
  }

  /// Whether `value` is the sum of two values of different ranks, of which the
  /// loop needs nothing but the sum over its runs.
  AddOp getDividedSum(Value value) {
    auto add = value.getDefiningOp<AddOp>();
    if (!add || !value.hasOneUse())
      return {};
    int64_t lhs = getStage(add.getLhs()), rhs = getStage(add.getRhs());
    bool crosses = lhs != everywhere && rhs != everywhere &&
                   rankOfStage[lhs] != rankOfStage[rhs];
    return crosses ? add : AddOp();
  }

  /// Sums of gradients from several stages are formed of the sums of each
  /// stage, behind the loop: then they cross once.
  void divideSums(AccumulateOp loop) {
    SmallVector<Value> summands;
    /// The value behind the loop that takes the place of `summand`.
    struct Sum {
      AddOp add; ///< Null: a result of the loop.
      size_t first, second;
    };
    SmallVector<Sum> sums;
    std::function<size_t(Value)> addSum = [&](Value summand) {
      AddOp add = getDividedSum(summand);
      if (!add) {
        summands.push_back(summand);
        sums.push_back({AddOp(), summands.size() - 1, 0});
      } else {
        size_t first = addSum(add.getLhs()), second = addSum(add.getRhs());
        sums.push_back({add, first, second});
      }
      return sums.size() - 1;
    };
    SmallVector<size_t> wanted;
    for (Value summand : loop.getYield().getOperands())
      wanted.push_back(addSum(summand));
    if (summands.size() == loop.getNumResults())
      return;
    builder.setInsertionPoint(loop);
    auto divided = builder.create<AccumulateOp>(
        loop.getLoc(), ValueRange(summands).getTypes(), loop.getCountAttr(),
        loop.getOperands());
    divided->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
    divided.getBody().takeBody(loop.getBody());
    divided.getYield()->setOperands(summands);
    builder.setInsertionPointAfter(divided);
    SmallVector<Value> values;
    for (const Sum &sum : sums) {
      if (!sum.add) {
        values.push_back(divided.getResult(sum.first));
        continue;
      }
      Operation *add = builder.clone(*AddOp(sum.add));
      add->setOperands({values[sum.first], values[sum.second]});
      values.push_back(add->getResult(0));
    }
    for (const Sum &sum : llvm::reverse(sums))
      if (AddOp add = sum.add)
        add.erase();
    for (auto [result, sum] : llvm::zip_equal(loop.getResults(), wanted))
      result.replaceAllUsesWith(values[sum]);
    loop.erase();
  }

  /// Inserts a transfer of `value` for each other rank's stage that uses it.
  void transfer(Value value) {
    int64_t from = getStage(value);
    if (from == everywhere)
      return;
    std::map<int64_t, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : value.getUses())
      if (auto stage =
              use.getOwner()->getAttrOfType<IntegerAttr>(stageAttrName))
        if (rankOfStage[stage.getInt()] != rankOfStage[from])
          uses[stage.getInt()].push_back(&use);
    for (auto &[to, usesThere] : uses) {
      auto part = Part::Update;
      for (OpOperand *use : usesThere)
        if (auto own = use->getOwner()->getAttrOfType<PartAttr>(partAttrName))
          part = std::min(part, own.getValue());
      builder.setInsertionPointAfterValue(value);
      auto transfer = builder.create<TransferOp>(
          value.getLoc(), value.getType(), value, static_cast<uint64_t>(from),
          static_cast<uint64_t>(to));
      transfer->setAttr(partAttrName,
                        PartAttr::get(builder.getContext(), part));
      for (OpOperand *use : usesThere)
        use->set(transfer.getResult());
    }
  }

  func::FuncOp function;
  bool isEvaluation = false;
  ArrayRef<int> rankOfStage;
  llvm::StringMap<int64_t> &homes;
  OpBuilder builder;
  llvm::DenseMap<Value, int64_t> stages;
};

struct InsertTransfersPass
    : shardc::impl::InsertTransfersPassBase<InsertTransfersPass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(),
                               ModulePhase::Differentiate,
                               ModulePhase::Differentiate)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    if (!module->hasAttr(pipelineAttrName))
      return;
    FailureOr<std::vector<int>> rankOfStage = getRanksOfStages(module);
    if (failed(rankOfStage))
      return signalPassFailure();
    // The train step is the first.
    llvm::StringMap<int64_t> homes;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        TransferInserter(function, *rankOfStage, homes).run();
  }
};

} // namespace
