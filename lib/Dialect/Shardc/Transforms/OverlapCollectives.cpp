//===- OverlapCollectives.cpp - Start early, wait late --------------------===//
//
// Splits every collective into a start and a wait and schedules once more: a
// collective starts as soon as its operands are complete, and while collectives
// are under way the first op in the given order that needs none of them goes
// next. What is gathered again for the backward pass does not start before that
// pass. Each departure from the given order must keep the bytes alive below a
// limit. The limit is lowered until the memory plan of the whole function is no
// larger than that of the given order; where no limit does, the order stays.
//
//===----------------------------------------------------------------------===//

#include "FunctionMemory.h"
#include "SplitCollective.h"

#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/WireBytes.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"

namespace shardc {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// The distinct values of its block that an op uses.
static llvm::SmallSetVector<Value, 4> getOperands(Operation *op) {
  SmallVector<Value> values = getUsedValues(op);
  return {values.begin(), values.end()};
}

/// The argument whose place operand `index` of a terminator takes; null if it
/// takes none's.
static BlockArgument getReplacedArgument(Operation *terminator,
                                         unsigned index) {
  Operation *parent = terminator->getParentOp();
  if (auto loop = dyn_cast<AccumulateOp>(parent))
    return loop.getSums()[index];
  return getDonor(cast<func::FuncOp>(parent), index);
}

/// Whether `start` gathers a weight for the backward pass,
/// which the forward pass has gathered for itself.
static bool gathersAgain(CollectiveStartOp start) {
  auto pass =
      start.getCollective()->getAttrOfType<PartAttr>("shardc.gathered_for");
  return pass && pass.getValue() == Part::Backward;
}

static bool isBackward(Operation *op) {
  auto part = op->getAttrOfType<PartAttr>("shardc.part");
  return part && part.getValue() == Part::Backward;
}

namespace {

enum class State { Waiting, UnderWay, Done };

/// A step of the given order: an op, or the start of a collective.
struct Step {
  Operation *op;
  /// The wait of a collective; null for other ops.
  Operation *wait = nullptr;
  /// The step is an all_reduce.
  bool worksInPlace = false;
  /// Steps that must be done before this one begins.
  llvm::SmallSetVector<int, 4> needs;
  State state = State::Waiting;
};

/// Orders the ops of one block of a function.
class Overlapper {
public:
  Overlapper(func::FuncOp function, Block &block);

  void run();

private:
  void findNeeds();
  void reset();
  void scheduleAsGiven();
  void scheduleBelow(int64_t limit);
  void startCollectives(int64_t limit);
  int pickStep(int64_t limit) const;
  void begin(int index);
  void waitFor(int index);
  void apply();

  /// Whether everything that the step needs has got as far as `state`.
  bool isReady(int index, State state) const {
    const Step &step = steps[index];
    return step.state == State::Waiting &&
           llvm::all_of(step.needs,
                        [&](int need) { return steps[need].state >= state; });
  }
  bool fits(int index, int64_t limit) const {
    return alive + getAllocation(index) <= limit;
  }
  int64_t getBytes(Value value) const;
  int64_t getAllocation(int index) const;
  void release(Value value);

  func::FuncOp function;
  Block &block;
  std::vector<Step> steps;
  SmallVector<int> collectives;
  /// How many steps read a value, and how many of them have yet to. The
  /// terminator counts and never reads.
  llvm::DenseMap<Value, int> allReaders, readers;
  SmallVector<Operation *> order;
  /// The first step of the given order that has not begun.
  size_t next = 0;
  /// Bytes of the values alive, and the most there were.
  int64_t alive = 0, most = 0;
};

} // namespace

Overlapper::Overlapper(func::FuncOp function, Block &block)
    : function(function), block(block) {
  for (Operation &op : block.without_terminator()) {
    if (isa<CollectiveWaitOp>(op))
      continue;
    Step &step = steps.emplace_back();
    step.op = &op;
    if (auto start = dyn_cast<CollectiveStartOp>(op)) {
      step.wait = start.getWait();
      step.worksInPlace = isa<AllReduceOp>(start.getCollective());
      collectives.push_back(steps.size() - 1);
    }
  }
}

void Overlapper::run() {
  if (collectives.empty())
    return;
  int64_t allowed = getPlannedBytes(function);
  findNeeds();
  scheduleAsGiven();
  SmallVector<Operation *> given = order;
  int64_t mostAsGiven = most;
  for (int64_t eighths : {8, 7, 6, 4, 0}) {
    scheduleBelow(mostAsGiven * eighths / 8);
    apply();
    if (getPlannedBytes(function) <= allowed)
      return;
  }
  order = given;
  apply();
}

/// What flows from step to step, what overwrites what another reads, and where
/// the backward pass begins.
void Overlapper::findNeeds() {
  llvm::DenseMap<Operation *, int> numbers;
  for (auto [index, step] : llvm::enumerate(steps)) {
    numbers[step.op] = index;
    if (step.wait)
      numbers[step.wait] = index;
    for (Value operand : getOperands(step.op)) {
      ++allReaders[operand];
      if (Operation *producer = operand.getDefiningOp())
        step.needs.insert(numbers.lookup(producer));
    }
  }
  Operation *terminator = block.getTerminator();
  for (Value operand : getOperands(terminator))
    ++allReaders[operand];
  auto addEarlierReaders = [&](int index, Value value) {
    for (Operation *user : value.getUsers()) {
      user = getUserInBlock(value, user);
      if (user != terminator && numbers.lookup(user) < index)
        steps[index].needs.insert(numbers.lookup(user));
    }
  };
  auto backward = llvm::find_if(steps, [](const Step &step) {
    return !step.wait && isBackward(step.op);
  });
  for (int index : collectives) {
    if (steps[index].worksInPlace)
      for (Value operand : getOperands(steps[index].op))
        addEarlierReaders(index, operand);
    if (int begin = backward - steps.begin();
        gathersAgain(cast<CollectiveStartOp>(steps[index].op)) && begin < index)
      steps[index].needs.insert(begin);
  }
  // New parameters and states, and the sums of a loop.
  for (OpOperand &operand : terminator->getOpOperands())
    if (BlockArgument argument =
            getReplacedArgument(terminator, operand.getOperandNumber()))
      if (auto it = numbers.find(operand.get().getDefiningOp());
          it != numbers.end())
        addEarlierReaders(it->second, argument);
}

void Overlapper::reset() {
  for (Step &step : steps)
    step.state = State::Waiting;
  readers = allReaders;
  order.clear();
  next = 0;
  alive = most = 0;
}

/// Begins every step in turn and waits for it at once.
void Overlapper::scheduleAsGiven() {
  reset();
  for (auto [index, step] : llvm::enumerate(steps)) {
    begin(index);
    if (step.wait)
      waitFor(index);
  }
}

void Overlapper::scheduleBelow(int64_t limit) {
  reset();
  while (next < steps.size()) {
    startCollectives(limit);
    if (next < steps.size())
      begin(pickStep(limit));
  }
  for (int index : collectives)
    if (steps[index].state == State::UnderWay)
      waitFor(index);
}

void Overlapper::startCollectives(int64_t limit) {
  for (int index : collectives) {
    if (!isReady(index, State::Done) || !fits(index, limit))
      continue;
    // What needs only collectives that started earlier does not fall behind.
    for (int other : collectives)
      if (isReady(other, State::UnderWay) && !isReady(other, State::Done) &&
          fits(other, limit))
        begin(other);
    if (fits(index, limit))
      begin(index);
  }
}

/// The first step that needs nothing under way, if it fits; else the first.
int Overlapper::pickStep(int64_t limit) const {
  if (isReady(next, State::Done))
    return next;
  for (size_t index = next + 1; index < steps.size(); ++index)
    if (!steps[index].wait && isReady(index, State::Done) && fits(index, limit))
      return index;
  return next;
}

/// Runs or starts a step, once what it needs has been waited for.
void Overlapper::begin(int index) {
  Step &step = steps[index];
  for (int need : step.needs)
    if (steps[need].state == State::UnderWay)
      waitFor(need);
  alive += getAllocation(index);
  most = std::max(most, alive);
  order.push_back(step.op);
  step.state = step.wait ? State::UnderWay : State::Done;
  for (Value operand : getOperands(step.op)) {
    if (!step.wait)
      release(operand);
    else if (step.worksInPlace && readers.lookup(operand) == 1)
      readers[operand] = 0; // its place is the result's now
  }
  while (next < steps.size() && steps[next].state != State::Waiting)
    ++next;
}

void Overlapper::waitFor(int index) {
  Step &step = steps[index];
  order.push_back(step.wait);
  step.state = State::Done;
  for (Value operand : getOperands(step.op))
    if (readers.lookup(operand) > 0)
      release(operand);
}

/// Bytes that a value takes; none for what has a place outside of the step.
int64_t Overlapper::getBytes(Value value) const {
  bool isResult = llvm::any_of(value.getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>();
  });
  return isa<BlockArgument>(value) || isResult ? 0
                                               : getNumBytes(value.getType());
}

/// Bytes that a step takes when it begins.
int64_t Overlapper::getAllocation(int index) const {
  const Step &step = steps[index];
  Operation *producer = step.wait ? step.wait : step.op;
  int64_t bytes = 0;
  for (OpResult result : producer->getResults()) {
    bytes += getBytes(result);
    if (!step.worksInPlace)
      continue;
    Value operand = step.op->getOperand(result.getResultNumber());
    if (readers.lookup(operand) == 1)
      bytes -= std::min(getBytes(operand), getBytes(result));
  }
  return bytes;
}

void Overlapper::release(Value value) {
  if (--readers[value] == 0)
    alive -= getBytes(value);
}

void Overlapper::apply() {
  Operation *terminator = block.getTerminator();
  for (Operation *op : order)
    op->moveBefore(terminator);
}

/// Every block is bounded by what the function needs after those before it.
static void overlap(func::FuncOp function) {
  for (Block *block : getBlocks(function))
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (getCollectiveCost(&op))
        splitCollective(&op);
  for (Block *block : getBlocks(function))
    Overlapper(function, *block).run();
}

namespace {

struct OverlapCollectivesPass
    : shardc::impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        overlap(function);
  }
};

} // namespace
