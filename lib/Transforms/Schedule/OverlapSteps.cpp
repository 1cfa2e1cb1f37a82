//===- OverlapSteps.cpp - Dependence graph of a block ---------------------===//

#include "OverlapSteps.h"

#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/Nesting.h"

using namespace mlir;
using namespace shardc;

/// By operand of a terminator, the argument whose buffer it overwrites; null if
/// there is none.
static std::vector<BlockArgument> getReplacedArguments(Operation *terminator) {
  Operation *parent = terminator->getParentOp();
  if (auto loop = dyn_cast<AccumulateOp>(parent))
    return {loop.getSums().begin(), loop.getSums().end()};
  return getDonors(cast<func::FuncOp>(parent));
}

/// Whether `start` is a rematerialised all-gather: it gathers a weight for the
/// backward pass alone.
static bool gathersAgain(CollectiveStartOp start) {
  auto pass =
      start.getCollective()->getAttrOfType<PartAttr>(gatheredForAttrName);
  return pass && pass.getValue() == Part::Backward;
}

static bool isBackward(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>(partAttrName);
  return part && part.getValue() == Part::Backward;
}

namespace {

class StepFinder {
public:
  explicit StepFinder(Block &block) : block(block) {}

  std::vector<OverlapStep> run() {
    for (Operation &op : block.without_terminator())
      if (!isa<CollectiveWaitOp>(op))
        addStep(&op);
    findOverwritten();
    findBackward();
    return std::move(steps);
  }

private:
  void addStep(Operation *op) {
    int index = steps.size();
    OverlapStep &step = steps.emplace_back();
    step.op = op;
    numbers[op] = index;
    if (auto start = dyn_cast<CollectiveStartOp>(op)) {
      step.wait = start.getWait();
      step.worksInPlace = isa<AllReduceOp>(start.getCollective());
      numbers[step.wait] = index;
    }
    SmallVector<Value> values = getUsedValues(op);
    step.operands.insert(values.begin(), values.end());
    for (Value operand : step.operands)
      if (Operation *producer = operand.getDefiningOp())
        step.needs.insert(numbers.lookup(producer));
  }

  /// Adds anti-dependences: from the readers of a buffer to the step that
  /// overwrites it, an all_reduce or the producer of a new parameter, state or
  /// sum of a loop.
  void findOverwritten() {
    for (auto [index, step] : llvm::enumerate(steps))
      if (step.worksInPlace)
        for (Value operand : step.operands)
          addEarlierReaders(index, operand);
    Operation *terminator = block.getTerminator();
    for (auto [operand, argument] : llvm::zip_equal(
             terminator->getOperands(), getReplacedArguments(terminator)))
      if (argument)
        if (auto it = numbers.find(operand.getDefiningOp());
            it != numbers.end())
          addEarlierReaders(it->second, argument);
  }

  void addEarlierReaders(int index, Value value) {
    for (Operation *user : value.getUsers()) {
      user = getUserInBlock(value, user);
      if (user != block.getTerminator() && numbers.lookup(user) < index)
        steps[index].needs.insert(numbers.lookup(user));
    }
  }

  void findBackward() {
    auto backward = llvm::find_if(steps, [](const OverlapStep &step) {
      return !step.wait && isBackward(step.op);
    });
    int begin = backward - steps.begin();
    for (int index = begin + 1, end = steps.size(); index < end; ++index)
      if (auto start = dyn_cast<CollectiveStartOp>(steps[index].op);
          start && gathersAgain(start))
        steps[index].needs.insert(begin);
  }

  Block &block;
  std::vector<OverlapStep> steps;
  llvm::DenseMap<Operation *, int> numbers;
};

} // namespace

std::vector<OverlapStep> shardc::getOverlapSteps(Block &block) {
  return StepFinder(block).run();
}
