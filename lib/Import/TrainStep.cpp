//===- TrainStep.cpp - Whole train steps of JAX ---------------------------===//

#include "TrainStep.h"
#include "Lowering.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Prediction.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace shardc;

/// Erases the results of `loop` that nothing uses, and what only they need.
static void eraseDeadResults(AccumulateOp loop) {
  YieldOp yield = loop.getYield();
  SmallVector<Value> results, summands;
  for (auto [result, summand] :
       llvm::zip_equal(loop.getResults(), yield.getOperands()))
    if (!result.use_empty()) {
      results.push_back(result);
      summands.push_back(summand);
    }
  if (summands.size() == loop.getNumResults())
    return;
  yield->setOperands(summands);
  Block &body = loop.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(
           llvm::drop_begin(llvm::reverse(body.getOperations()))))
    if (op.use_empty())
      op.erase();
  for (unsigned index = loop.getNumOperands(); index-- > 0;)
    if (loop.getNumOperands() > 1 && body.getArgument(index).use_empty()) {
      body.eraseArgument(index);
      loop->eraseOperand(index);
    }
  OpBuilder builder(loop);
  auto smaller = builder.create<AccumulateOp>(
      loop.getLoc(), ValueRange(summands).getTypes(), loop.getCountAttr(),
      loop.getOperands());
  smaller->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  smaller.getBody().takeBody(loop.getBody());
  for (auto [result, kept] : llvm::zip_equal(results, smaller.getResults()))
    result.replaceAllUsesWith(kept);
  loop.erase();
}

void shardc::eraseDeadOps(func::FuncOp function) {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator())
    ops.push_back(&op);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
    else if (auto loop = dyn_cast<AccumulateOp>(op))
      eraseDeadResults(loop);
}

static unsigned findLoss(func::FuncOp step) {
  for (unsigned i = 0; i < step.getNumResults(); ++i)
    if (auto name = step.getResultAttrOfType<StringAttr>(i, resultAttrName))
      if (name.getValue() == "loss")
        return i;
  return step.getNumResults();
}

namespace {

/// The loss is made in the forward pass. Of the other ops those that JAX made
/// by transposition, and what these need, are the backward pass, and so is a
/// loop over microbatches.
class PartMarker {
public:
  explicit PartMarker(Value loss) { forward.insert(loss); }

  void mark(Block &block) {
    for (Operation &op : llvm::reverse(block.without_terminator())) {
      Part part = Part::Update;
      auto loop = dyn_cast<AccumulateOp>(op);
      if (loop) {
        part = Part::Backward;
        markLoop(loop);
      } else if (isForward(&op)) {
        part = Part::Forward;
        forward.insert(op.operand_begin(), op.operand_end());
      } else if (findScope(op.getLoc(), "transpose(") ||
                 llvm::any_of(op.getUsers(), [&](Operation *user) {
                   return backward.contains(user);
                 })) {
        part = Part::Backward;
      }
      if (part == Part::Backward)
        backward.insert(&op);
      op.setDiscardableAttr(partAttrName, PartAttr::get(op.getContext(), part));
    }
  }

private:
  bool isForward(Operation *op) const {
    return llvm::any_of(op->getResults(),
                        [&](Value value) { return forward.contains(value); });
  }

  void markLoop(AccumulateOp loop) {
    for (auto [result, summand] :
         llvm::zip_equal(loop.getResults(), loop.getYield().getOperands()))
      if (forward.contains(result))
        forward.insert(summand);
    mark(loop.getBody().front());
    for (auto [operand, slice] :
         llvm::zip_equal(loop.getOperands(), loop.getSlices()))
      if (forward.contains(slice))
        forward.insert(operand);
  }

  /// The values that the loss needs.
  llvm::DenseSet<Value> forward;
  llvm::DenseSet<Operation *> backward;
};

} // namespace

/// Erases arguments with the role of a `Role` that nothing uses.
template <typename... Role>
static void eraseUnused(func::FuncOp function) {
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument argument : function.getArguments())
    if (argument.use_empty() &&
        isa<Role...>(getRole(function, argument.getArgNumber())))
      unused.set(argument.getArgNumber());
  function.eraseArguments(unused);
}

/// `@evaluate`: the loss of `step`, of the arguments that it depends on.
static func::FuncOp buildEvaluation(func::FuncOp step, unsigned lossIndex) {
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfter(step);
  auto evaluate = cast<func::FuncOp>(builder.clone(*step));
  evaluate.setName("evaluate");
  Operation *end = evaluate.getBody().front().getTerminator();
  end->setOperands({end->getOperand(lossIndex)});
  llvm::BitVector others(step.getNumResults(), true);
  others.reset(lossIndex);
  evaluate.eraseResults(others);
  eraseDeadOps(evaluate);
  auto forward = PartAttr::get(builder.getContext(), Part::Forward);
  for (auto loop : evaluate.getOps<AccumulateOp>())
    loop->setDiscardableAttr(partAttrName, forward);
  eraseUnused<StateAttr>(evaluate);
  return evaluate;
}

/// `@predict`: the output of the network that `evaluate` computes its loss
/// from, or a note on the module why there is none.
static void buildPrediction(func::FuncOp evaluate) {
  Operation *end = evaluate.getBody().front().getTerminator();
  Prediction prediction = findPrediction(evaluate, end->getOperand(0));
  if (!prediction.value) {
    evaluate->getParentOfType<ModuleOp>()->setAttr(
        noPredictionAttrName,
        StringAttr::get(evaluate.getContext(), prediction.reason));
    return;
  }
  OpBuilder builder(evaluate.getContext());
  builder.setInsertionPointAfter(evaluate);
  IRMapping mapping;
  auto predict = cast<func::FuncOp>(builder.clone(*evaluate, mapping));
  predict.setName(kPredictName);
  Value value = mapping.lookup(prediction.value);
  predict.getBody().front().getTerminator()->setOperands({value});
  predict.setType(
      builder.getFunctionType(predict.getArgumentTypes(), {value.getType()}));
  predict.setResultAttrs(
      0, builder.getDictionaryAttr(builder.getNamedAttr(
             resultAttrName, builder.getStringAttr(kPredictionName))));
  eraseDeadOps(predict);
  eraseUnused<StateAttr, LabelAttr>(predict);
}

/// Explanations find the annotations of arguments in their locations.
static void noteAnnotations(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto sharding =
        step.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
    auto kind =
        StringAttr::get(step.getContext(), getRoleKind(getRole(step, index)));
    argument.setLoc(
        addMetadata(argument.getLoc(),
                    SourceAttr::get(step.getContext(), kind, StringAttr(),
                                    sharding, ArrayAttr())));
  }
}

void shardc::completeTrainStep(func::FuncOp step) {
  noteAnnotations(step);
  unsigned lossIndex = findLoss(step);
  Operation *end = step.getBody().front().getTerminator();
  PartMarker(end->getOperand(lossIndex)).mark(step.getBody().front());
  buildPrediction(buildEvaluation(step, lossIndex));
}
