//===- OverlapCollectives.cpp - Asynchronous collectives ------------------===//
//
// List scheduling under a memory limit. Splits every collective into a start
// and a wait. A collective starts as soon as its operands are complete. While
// collectives are in flight, the next op is the first in the given order that
// depends on none of them. Rematerialised all-gathers do not start before the
// backward pass.
//
// Each departure from the given order must keep the live bytes below the limit.
// The limit is lowered until the memory plan of the function is no larger than
// that of the given order. If no limit achieves this, the given order stays.
//
//===----------------------------------------------------------------------===//

#include "FirstThatFits.h"
#include "OverlapSteps.h"
#include "SplitCollective.h"
#include "shardc/Analysis/FunctionMemory.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-overlap-collectives"

namespace shardc {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVESPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

enum class State { Waiting, UnderWay, Done };

/// Orders the ops of one block of a function.
class Overlapper {
public:
  Overlapper(func::FuncOp function, Block &block);

  void run();

private:
  void reset();
  void scheduleAsGiven();
  void scheduleBelow(int64_t limit);
  void startCollectives(int64_t limit);
  int pickStep(int64_t limit) const;
  void begin(int index);
  void waitFor(int index);
  void apply();
  /// Prints the place of each start and each wait.
  void print() const {
    for (Operation *op : order)
      if (isa<CollectiveStartOp, CollectiveWaitOp>(op))
        llvm::dbgs() << "  " << describeOp(op) << ", before "
                     << describeOp(op->getNextNode()) << '\n';
  }

  /// Whether the step waits, and all its dependences have at least `state`.
  bool isReady(int index, State state) const {
    return states[index] == State::Waiting &&
           (state == State::Done ? numNotDone : numNotBegun)[index] == 0;
  }
  void setState(int index, State state);
  /// Updates the sets of steps that may begin: `ready` and the others.
  void update(int index);
  int64_t getBytes(Value value) const;
  void setReaders(Value value, int count);
  void release(Value value);

  func::FuncOp function;
  Block &block;
  const std::vector<OverlapStep> steps;
  std::vector<State> states;
  /// By step, the steps that depend on it, and the numbers of its dependences
  /// that are not done and that have not begun.
  std::vector<SmallVector<int, 4>> neededBy;
  std::vector<int> numNotDone, numNotBegun;
  SmallVector<int> collectives;
  /// The number of steps that read a value, and the number of those that have
  /// not read it yet. The terminator counts and never reads.
  llvm::DenseMap<Value, int> allReaders, readers;
  /// Bytes of the values of the block; 0 for values whose buffers are outside
  /// of the temporary memory.
  llvm::DenseMap<Value, int64_t> bytes;
  /// By value, the steps that work in place on it, and the bytes that each
  /// saves if it is the last reader.
  llvm::DenseMap<Value, SmallVector<std::pair<int, int64_t>, 1>> replaced;
  /// By step, the bytes that it allocates when it begins: initially, and in the
  /// current state.
  std::vector<int64_t> allAllocations, allocations;
  /// Steps by the bytes that they allocate: collectives whose dependences are
  /// done, collectives whose dependences are done or in flight, at least one of
  /// them in flight, and other steps whose dependences are done.
  FirstThatFits ready, almostReady, runnable;
  SmallVector<Operation *> order;
  /// The first step of the given order that has not begun.
  size_t next = 0;
  /// Bytes of the live values, and their maximum.
  int64_t alive = 0, most = 0;
};

} // namespace

Overlapper::Overlapper(func::FuncOp function, Block &block)
    : function(function), block(block), steps(getOverlapSteps(block)),
      neededBy(steps.size()) {
  for (auto [index, step] : llvm::enumerate(steps)) {
    for (int need : step.needs)
      neededBy[need].push_back(index);
    if (step.wait)
      collectives.push_back(index);
    for (Value operand : step.operands)
      ++allReaders[operand];
  }
  SmallVector<Value> atEnd = getUsedValues(block.getTerminator());
  for (Value value : llvm::SmallSetVector<Value, 4>(atEnd.begin(), atEnd.end()))
    ++allReaders[value];
  for (auto [index, step] : llvm::enumerate(steps)) {
    Operation *producer = step.wait ? step.wait : step.op;
    int64_t allocation = 0;
    for (OpResult result : producer->getResults()) {
      int64_t own = bytes[result] = getBytes(result);
      allocation += own;
      if (!step.worksInPlace)
        continue;
      Value operand = step.op->getOperand(result.getResultNumber());
      replaced[operand].emplace_back(index,
                                     std::min(bytes.lookup(operand), own));
    }
    allAllocations.push_back(allocation);
  }
  for (auto &[value, places] : replaced)
    if (allReaders.lookup(value) == 1)
      for (auto [index, saved] : places)
        allAllocations[index] -= saved;
}

void Overlapper::run() {
  if (collectives.empty())
    return;
  int64_t allowed = getPlannedBytes(function);
  scheduleAsGiven();
  SmallVector<Operation *> given = order, tried;
  int64_t mostAsGiven = most;
  for (int64_t eighths : {8, 7, 6, 4, 0}) {
    scheduleBelow(mostAsGiven * eighths / 8);
    if (order == tried)
      continue;
    apply();
    bool fits = getPlannedBytes(function, allowed) <= allowed;
    LLVM_DEBUG(llvm::dbgs()
               << "@" << function.getName() << ": with at most "
               << mostAsGiven * eighths / 8 << " live bytes the plan "
               << (fits ? "stays within " : "exceeds ") << allowed
               << " bytes\n");
    if (fits) {
      LLVM_DEBUG(print());
      return;
    }
    tried = order;
  }
  LLVM_DEBUG(llvm::dbgs() << "@" << function.getName()
                          << ": keep the given order\n");
  order = given;
  apply();
}

void Overlapper::reset() {
  states.assign(steps.size(), State::Waiting);
  numNotDone.clear();
  for (const OverlapStep &step : steps)
    numNotDone.push_back(step.needs.size());
  numNotBegun = numNotDone;
  readers = allReaders;
  allocations = allAllocations;
  ready = almostReady = runnable = FirstThatFits(steps.size());
  for (size_t index = 0; index < steps.size(); ++index)
    update(index);
  order.clear();
  next = 0;
  alive = most = 0;
}

void Overlapper::setState(int index, State state) {
  for (int other : neededBy[index]) {
    numNotBegun[other] -= states[index] == State::Waiting;
    numNotDone[other] -= state == State::Done;
    update(other);
  }
  states[index] = state;
  update(index);
}

void Overlapper::update(int index) {
  auto put = [&](FirstThatFits &set, bool isIn) {
    if (isIn)
      set.put(index, allocations[index]);
    else
      set.remove(index);
  };
  bool isDone = isReady(index, State::Done);
  if (!steps[index].wait)
    return put(runnable, isDone);
  put(ready, isDone);
  put(almostReady, !isDone && isReady(index, State::UnderWay));
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
    if (states[index] == State::UnderWay)
      waitFor(index);
}

void Overlapper::startCollectives(int64_t limit) {
  for (int index = 0; (index = ready.find(index, limit - alive)) >= 0;
       ++index) {
    // Collectives that depend on those in flight come first, so that they do
    // not fall behind.
    for (int other = 0; (other = almostReady.find(other, limit - alive)) >= 0;
         ++other)
      begin(other);
    if (alive + allocations[index] <= limit)
      begin(index);
  }
}

/// The first step that has not begun. If its dependences are not done, rather
/// the first step, if any, whose dependences are and that fits below `limit`.
int Overlapper::pickStep(int64_t limit) const {
  if (isReady(next, State::Done))
    return next;
  int index = runnable.find(next + 1, limit - alive);
  return index >= 0 ? index : next;
}

/// Waits for the dependences of a step, then starts or runs it.
void Overlapper::begin(int index) {
  const OverlapStep &step = steps[index];
  for (int need : step.needs)
    if (states[need] == State::UnderWay)
      waitFor(need);
  alive += allocations[index];
  most = std::max(most, alive);
  order.push_back(step.op);
  setState(index, step.wait ? State::UnderWay : State::Done);
  for (Value operand : step.operands) {
    if (!step.wait)
      release(operand);
    else if (step.worksInPlace && readers.lookup(operand) == 1)
      setReaders(operand, 0); // its place is the result's now
  }
  while (next < steps.size() && states[next] != State::Waiting)
    ++next;
}

void Overlapper::waitFor(int index) {
  const OverlapStep &step = steps[index];
  order.push_back(step.wait);
  setState(index, State::Done);
  for (Value operand : step.operands)
    if (readers.lookup(operand) > 0)
      release(operand);
}

/// Bytes of `value`; 0 for arguments and for operands of the terminator, whose
/// buffers are outside of the temporary memory.
int64_t Overlapper::getBytes(Value value) const {
  bool isResult = llvm::any_of(value.getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>();
  });
  return isa<BlockArgument>(value) || isResult ? 0
                                               : getNumBytes(value.getType());
}

/// Sets the number of steps that have not read `value` yet.
void Overlapper::setReaders(Value value, int count) {
  int &known = readers[value];
  if (auto it = replaced.find(value); it != replaced.end())
    for (auto [index, saved] : it->second) {
      allocations[index] -= ((count == 1) - (known == 1)) * saved;
      update(index);
    }
  known = count;
}

void Overlapper::release(Value value) {
  setReaders(value, readers.lookup(value) - 1);
  if (readers.lookup(value) == 0)
    alive -= bytes.lookup(value);
}

void Overlapper::apply() {
  Operation *terminator = block.getTerminator();
  for (Operation *op : order)
    op->moveBefore(terminator);
}

/// Overlaps block by block. The limit of a block is the memory plan of the
/// function with the blocks before it reordered.
static void overlap(func::FuncOp function) {
  for (Block *block : getBlocks(function))
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (getCollectiveCost(&op))
        splitCollective(&op);
  // The order of a pipeline is decided: collectives end where they start.
  if (function->hasAttr(rankAttrName))
    return;
  for (Block *block : getBlocks(function))
    Overlapper(function, *block).run();
}

namespace {

struct OverlapCollectivesPass
    : shardc::impl::OverlapCollectivesPassBase<OverlapCollectivesPass> {
  void runOnOperation() override {
    // The messages of a pipeline have started and are waited for already.
    bool isPipeline = getOperation()->hasAttr(pipelineAttrName);
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               isPipeline ? ModulePhase::Schedule
                                          : ModulePhase::Kernels)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        overlap(function);
  }
};

} // namespace
