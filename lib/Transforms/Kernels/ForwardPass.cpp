//===- ForwardPass.cpp - What the backward pass can compute again ---------===//

#include "ForwardPass.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace shardc;

/// The gather of weights for `pass` that makes `value`; null if none does.
static AllGatherOp getGather(Value value, Part pass) {
  auto gather = value.getDefiningOp<AllGatherOp>();
  if (!gather)
    return {};
  auto attr = gather->getAttrOfType<PartAttr>(gatheredForAttrName);
  return attr && attr.getValue() == pass ? gather : AllGatherOp();
}

bool shardc::isGatheredForForward(Value value) {
  return static_cast<bool>(getGather(value, Part::Forward));
}

Value shardc::findGatheredAgain(Value value) {
  AllGatherOp gather = getGather(value, Part::Forward);
  if (!gather)
    return {};
  unsigned number = cast<OpResult>(value).getResultNumber();
  // Of a gather in several steps, each is done again.
  Value operand = gather->getOperand(number);
  for (Value source : {operand, findGatheredAgain(operand)})
    if (source)
      for (OpOperand &use : source.getUses()) {
        auto other = dyn_cast<AllGatherOp>(use.getOwner());
        if (!other || other->getBlock() != gather->getBlock() ||
            other.getAxes() != gather.getAxes())
          continue;
        OpResult again = other->getResult(use.getOperandNumber());
        if (getGather(again, Part::Backward) &&
            again.getType() == value.getType() &&
            other.getDims()[use.getOperandNumber()] == gather.getDims()[number])
          return again;
      }
  return {};
}

/// Whether `value` is a tensor of inputs, or rows of one.
static bool isInput(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return false;
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<AccumulateOp>(owner))
    return argument.getArgNumber() < loop.getNumOperands() &&
           isInput(loop.getOperands()[argument.getArgNumber()]);
  auto function = dyn_cast<func::FuncOp>(owner);
  return function && isa_and_nonnull<InputAttr>(function.getArgAttr(
                         argument.getArgNumber(), roleAttrName));
}

/// Whether `op` multiplies a value computed from the inputs by one that is not:
/// a weight.
static bool isGemmWithWeight(Operation *op,
                             llvm::function_ref<bool(Value)> isFromInputs) {
  auto dot = dyn_cast<DotGeneralOp>(op);
  return dot && isFromInputs(dot.getLhs()) != isFromInputs(dot.getRhs());
}

ForwardPass::ForwardPass(Block &block, const Machine &machine)
    : block(block), machine(machine),
      traffic(block.getParentOp()->getParentOfType<func::FuncOp>()
                  ? block.getParentOp()->getParentOfType<func::FuncOp>()
                  : cast<func::FuncOp>(block.getParentOp())) {
  for (Operation &op : block) {
    isDifferentiated |= isPart(&op, Part::Backward) && !isa<AccumulateOp>(op);
    if (!isInForwardPass(&op) || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    if (llvm::any_of(op.getOperands(),
                     [&](Value operand) { return isFromInputs(operand); }))
      fromInputs.insert(op.result_begin(), op.result_end());
    ops.push_back(&op);
    if (isRepeatable(&op))
      repeatable.push_back(&op);
  }
  for (auto [number, op] : llvm::enumerate(ops))
    positions[op] = static_cast<int64_t>(number);
  for (Operation *op : llvm::reverse(ops)) {
    if (op->getNumResults() && isFromInputs(op->getResult(0)))
      continue;
    int64_t first = end;
    for (Operation *user : op->getUsers())
      if (auto known = positions.find(user); known != positions.end())
        first = std::min(first, known->second);
    positions[op] = first;
  }
}

bool ForwardPass::isFromInputs(Value value) const {
  return fromInputs.contains(value) || isInput(value);
}

bool ForwardPass::isRepeatable(Operation *op) const {
  if (getCollectiveCost(op) || op->getNumRegions() > 0 ||
      op->getNumResults() == 0 || isWeight(op->getResult(0)))
    return false;
  return llvm::none_of(op->getOperands(), [](Value operand) {
    return isGatheredForForward(operand) && !findGatheredAgain(operand);
  });
}

std::vector<std::vector<Cut>> ForwardPass::findCuts() const {
  llvm::DenseSet<Operation *> inForward(ops.begin(), ops.end());
  llvm::DenseMap<Value, int64_t> usesLeft;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (fromInputs.contains(operand))
        ++usesLeft[operand];
  auto isWithWeight = [&](Operation *op) {
    return isGemmWithWeight(op,
                            [&](Value value) { return isFromInputs(value); });
  };
  size_t numGemms = llvm::count_if(ops, isWithWeight), numBefore = 0;
  std::vector<std::vector<Cut>> groups;
  llvm::DenseSet<Value> alive;
  size_t lastGroup = 0;
  Value last;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (fromInputs.contains(operand) && --usesLeft[operand] == 0)
        alive.erase(operand);
    for (Value result : op->getResults())
      if (usesLeft.lookup(result) > 0)
        alive.insert(result);
    numBefore += isWithWeight(op);
    if (numBefore == numGemms)
      break;
    if (numBefore == 0 || alive.size() != 1 || *alive.begin() == last)
      continue;
    last = *alive.begin();
    if (groups.empty() || lastGroup != numBefore)
      groups.emplace_back();
    lastGroup = numBefore;
    groups.back().push_back(
        {last, positions.lookup(op), getNumBytes(last.getType())});
  }
  return groups;
}

OpSet ForwardPass::getOps(int64_t from, int64_t to, Value kept) const {
  OpSet found;
  for (Operation *op : repeatable)
    if (int64_t position = getPosition(op);
        position > from && position <= to && op != kept.getDefiningOp())
      found.insert(op);
  return found;
}

bool ForwardPass::isUsedLater(Operation *op) const {
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return !isInForwardPass(user) && !user->hasTrait<OpTrait::IsTerminator>();
  });
}

std::vector<Operation *> ForwardPass::getRepeated(const OpSet &dropped) const {
  std::vector<Operation *> worklist;
  OpSet found;
  for (Operation *op : dropped)
    if (isUsedLater(op) && found.insert(op).second)
      worklist.push_back(op);
  while (!worklist.empty()) {
    Operation *op = worklist.back();
    worklist.pop_back();
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && dropped.contains(def) && found.insert(def).second)
        worklist.push_back(def);
  }
  std::vector<Operation *> sorted(found.begin(), found.end());
  llvm::sort(sorted, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  return sorted;
}

RecomputationCost ForwardPass::getCost(const OpSet &dropped) const {
  RecomputationCost cost;
  llvm::DenseSet<Value> counted;
  for (Operation *op : getRepeated(dropped)) {
    cost.seconds += getNumRuns(op) * getSerialSeconds(machine, op, traffic);
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (def && getCollectiveCost(def) && !isUsedLater(def) &&
          !findGatheredAgain(operand) && counted.insert(operand).second)
        cost.keptBytes += getNumBytes(operand.getType());
    }
  }
  return cost;
}

int64_t ForwardPass::getHeldBytes(const OpSet &some) const {
  int64_t bytes = 0;
  for (Operation *op : some)
    for (Value result : op->getResults())
      if (isUsedLater(op) && traffic.isStored(result) && !isFreeToRepeat(op))
        bytes += getNumBytes(result.getType());
  return bytes;
}

/// Moves the ops that make `value`, a weight gathered for the backward pass, in
/// front of `op`, unless they are there.
static void gatherBefore(Value value, Operation *op) {
  Operation *gather = value.getDefiningOp();
  if (!gather || gather->getBlock() != op->getBlock() ||
      gather->isBeforeInBlock(op))
    return;
  for (Value operand : gather->getOperands())
    gatherBefore(operand, op);
  gather->moveBefore(op);
}

unsigned shardc::recompute(Block &block, const ForwardPass &forward,
                           const OpSet &dropped) {
  std::vector<Operation *> repeated = forward.getRepeated(dropped);
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto [number, op] : llvm::enumerate(repeated))
    numbers[op] = number;
  SmallVector<Operation *> users;
  for (Operation &op : block)
    if (!isInForwardPass(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      users.push_back(&op);
  IRMapping clones;
  unsigned numClones = 0;
  for (Operation *user : users) {
    // What `user` needs and nobody in front of it did, in program order.
    llvm::SmallSetVector<unsigned, 8> needed;
    auto add = [&](Operation *op) {
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (auto it = numbers.find(def);
              it != numbers.end() && !clones.contains(operand))
            needed.insert(it->second);
    };
    add(user);
    for (size_t index = 0; index < needed.size(); ++index)
      add(repeated[needed[index]]);
    SmallVector<unsigned> order = needed.takeVector();
    llvm::sort(order);
    OpBuilder builder(user);
    for (unsigned number : order) {
      Operation *op = repeated[number];
      for (Value operand : op->getOperands())
        if (Value again = findGatheredAgain(operand)) {
          gatherBefore(again, user);
          clones.map(operand, again);
        }
      Operation *clone = builder.clone(*op, clones);
      clone->setAttr(
          partAttrName,
          PartAttr::get(block.getParentOp()->getContext(), Part::Backward));
      clone->setAttr(recomputedAttrName, builder.getUnitAttr());
      ++numClones;
    }
    for (OpOperand &operand : user->getOpOperands())
      if (Operation *def = operand.get().getDefiningOp();
          def && numbers.contains(def))
        operand.set(clones.lookup(operand.get()));
  }
  return numClones;
}
