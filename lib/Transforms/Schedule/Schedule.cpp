//===- Schedule.cpp - Fix the order of execution --------------------------===//
//
// List scheduling. Readers of a parameter come before the op that updates it in
// place, if the data flow allows it. Among the ops that are ready, the first in
// program order that frees at least what it allocates goes next, so that a
// gradient is used up as soon as it is known; else the first of all. A weight
// that is gathered for one pass only, so as not to hold it, comes right before
// its first user.
//
//===----------------------------------------------------------------------===//

#include "FirstThatFits.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

namespace shardc {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Orders the ops of one block, which are numbered in program order.
class Scheduler {
public:
  explicit Scheduler(Block &block) : block(block) {
    for (Operation &op : block.without_terminator()) {
      numbers[&op] = ops.size();
      ops.push_back(&op);
      comesWithUser.push_back(op.hasAttr(gatheredForAttrName) &&
                              getCollectiveCost(&op));
    }
    before.resize(ops.size());
    readBefore.resize(ops.size());
    neededBy.resize(ops.size());
    overwrittenBy.resize(ops.size());
    numMissing.resize(ops.size());
    growths.resize(ops.size());
    isDone.resize(ops.size());
    ready = readyGathers = FirstThatFits(ops.size());
  }

  void run() {
    for (auto [number, op] : llvm::enumerate(ops))
      for (Value operand : getUsedValues(op))
        if (Operation *def = operand.getDefiningOp())
          before[number].insert(numbers.lookup(def));
    if (auto function = dyn_cast<func::FuncOp>(block.getParentOp()))
      addAntiDependences(function);
    findGrowths();
    for (int number = 0, end = ops.size(); number < end; ++number) {
      for (int other : before[number])
        neededBy[other].push_back(number);
      for (int other : readBefore[number])
        overwrittenBy[other].push_back(number);
      numMissing[number] = before[number].size() + readBefore[number].size();
    }
    for (int number = 0, end = ops.size(); number < end; ++number)
      if (before[number].empty() && readBefore[number].empty())
        becomeReady(number);
    Operation *terminator = block.getTerminator();
    for (int number = pickNext(); number >= 0; number = pickNext())
      for (int member : getGroup(number)) {
        ops[member]->moveBefore(terminator);
        finish(member);
      }
  }

private:
  Block &block;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, int> numbers;
  /// What an op reads is made before, and what it overwrites is read.
  std::vector<llvm::SmallSetVector<int, 4>> before;
  std::vector<SmallVector<int, 4>> readBefore;
  /// Whether the order of the numbers satisfies all of these.
  bool isProgramOrder = true;
  /// By op those that use its results, those that overwrite what it reads, and
  /// how many it waits for.
  std::vector<SmallVector<int, 4>> neededBy, overwrittenBy;
  std::vector<int> numMissing;
  /// By value how many ops, the terminator included, have yet to use it.
  llvm::DenseMap<Value, int> numUsers;
  /// Bytes that running an op next allocates, less those it frees.
  std::vector<int64_t> growths;
  /// Ops that may be next, by the growth of their groups; gathers for one pass
  /// only are apart, by nothing.
  FirstThatFits ready, readyGathers;
  /// Whether an op gathers a weight for one pass only.
  std::vector<bool> comesWithUser;
  std::vector<bool> isDone;

  /// Whether op `to` comes after op `from` by what is known so far.
  bool reaches(int from, int to) const {
    if (isProgramOrder && to < from)
      return false;
    std::vector<bool> isSeen(ops.size());
    SmallVector<int> worklist{to};
    while (!worklist.empty()) {
      int number = worklist.pop_back_val();
      if (number == from)
        return true;
      // As long as everything comes after smaller numbers only.
      if (isSeen[number] || (isProgramOrder && number < from))
        continue;
      isSeen[number] = true;
      llvm::append_range(worklist, before[number]);
      llvm::append_range(worklist, readBefore[number]);
    }
    return false;
  }

  /// A result that takes its argument's place waits for the argument's readers.
  void addAntiDependences(func::FuncOp function) {
    std::vector<BlockArgument> donors = getDonors(function);
    Operation *terminator = block.getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      BlockArgument argument = donors[operand.getOperandNumber()];
      Operation *update = operand.get().getDefiningOp();
      if (!argument || !update)
        continue;
      int number = numbers.lookup(update);
      for (Operation *user : argument.getUsers()) {
        user = getUserInBlock(argument, user);
        if (user == terminator)
          continue;
        int reader = numbers.lookup(user);
        if (reader == number || reaches(number, reader))
          continue;
        readBefore[number].push_back(reader);
        isProgramOrder &= reader < number;
      }
    }
  }

  /// The distinct values of the block that `op` uses and an op computes.
  static llvm::SmallSetVector<Value, 4> getComputedOperands(Operation *op) {
    llvm::SmallSetVector<Value, 4> operands;
    for (Value value : getUsedValues(op))
      if (value.getDefiningOp())
        operands.insert(value);
    return operands;
  }

  /// What ops allocate, and which values have one user.
  void findGrowths() {
    for (auto [number, op] : llvm::enumerate(ops)) {
      for (Value result : op->getResults()) {
        bool isDonated = llvm::any_of(result.getUsers(), [](Operation *user) {
          return user->hasTrait<OpTrait::IsTerminator>();
        });
        if (!isDonated)
          growths[number] += getNumBytes(result.getType());
      }
      for (Value operand : getComputedOperands(op))
        ++numUsers[operand];
    }
    for (Value operand : getComputedOperands(block.getTerminator()))
      ++numUsers[operand];
    for (auto [number, op] : llvm::enumerate(ops))
      for (Value operand : getComputedOperands(op))
        if (numUsers.lookup(operand) == 1)
          growths[number] -= getNumBytes(operand.getType());
  }

  /// What op `number`, which is ready, takes along, and the op itself.
  SmallVector<int> getGroup(int number) const {
    llvm::SmallSetVector<int, 4> group;
    for (int other : before[number])
      if (!isDone[other])
        for (int member : getGroup(other))
          group.insert(member);
    group.insert(number);
    return SmallVector<int>(group.getArrayRef());
  }

  /// Says anew what running op `number` takes, if it is ready; what a gather
  /// takes, its users take.
  void update(int number) {
    if (isDone[number] || numMissing[number] > 0)
      return;
    if (comesWithUser[number]) {
      readyGathers.put(number, 0);
      for (int user : neededBy[number])
        update(user);
      return;
    }
    int64_t growth = 0;
    for (int member : getGroup(number))
      growth += growths[member];
    ready.put(number, growth);
  }

  /// Nobody who uses it has to wait for a gather that comes along.
  void becomeReady(int number) {
    update(number);
    if (comesWithUser[number])
      letGo(neededBy[number]);
  }

  /// One op less is in the way of each of `waiting`.
  void letGo(ArrayRef<int> waiting) {
    for (int number : waiting)
      if (--numMissing[number] == 0)
        becomeReady(number);
  }

  void finish(int number) {
    isDone[number] = true;
    ready.remove(number);
    readyGathers.remove(number);
    for (Value operand : getComputedOperands(ops[number])) {
      if (--numUsers[operand] != 1)
        continue;
      for (Operation *user : operand.getUsers()) {
        auto it = numbers.find(getUserInBlock(operand, user));
        if (it == numbers.end() || isDone[it->second])
          continue;
        growths[it->second] -= getNumBytes(operand.getType());
        update(it->second);
        break;
      }
    }
    letGo(overwrittenBy[number]);
    if (!comesWithUser[number])
      return letGo(neededBy[number]);
    for (int user : neededBy[number])
      update(user);
  }

  /// The op to come next; -1 if none is left.
  int pickNext() const {
    for (int number : {ready.find(0, 0), ready.find(0), readyGathers.find(0)})
      if (number >= 0)
        return number;
    return -1;
  }
};

struct SchedulePass : shardc::impl::SchedulePassBase<SchedulePass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Kernels,
                               ModulePhase::Kernels)))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        for (Block *block : getBlocks(function))
          Scheduler(*block).run();
  }
};

} // namespace
