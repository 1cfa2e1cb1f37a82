//===- Schedule.cpp - List scheduling -------------------------------------===//
//
// Among the ops that are ready, the next is the first in program order that
// frees at least as many bytes as it allocates, so that gradients do not
// accumulate; if there is none, the first in program order. Readers of a
// parameter precede the op that updates it in place, if the data flow allows
// it. An all-gather of a weight for one pass only, and an op that is repeated
// in the backward pass, come right before their first user.
//
//===----------------------------------------------------------------------===//

#include "FirstThatFits.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-schedule"

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
      comesWithUser.push_back(
          (op.hasAttr(gatheredForAttrName) && getCollectiveCost(&op)) ||
          op.hasAttr(recomputedAttrName) || followsFromRepeated(&op));
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
        LLVM_DEBUG(llvm::dbgs() << describeOp(ops[member]) << ": grows by "
                                << growths[member] << " bytes\n");
        ops[member]->moveBefore(terminator);
        finish(member);
      }
  }

private:
  Block &block;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, int> numbers;
  /// By op, the producers of its operands, and the readers of the buffers that
  /// it overwrites.
  std::vector<llvm::SmallSetVector<int, 4>> before;
  std::vector<SmallVector<int, 4>> readBefore;
  /// Whether program order satisfies all these dependences.
  bool isProgramOrder = true;
  /// By op, the users of its results, the ops that overwrite buffers which it
  /// reads, and the number of its dependences that are not done.
  std::vector<SmallVector<int, 4>> neededBy, overwrittenBy;
  std::vector<int> numMissing;
  /// By value, the number of ops, including the terminator, that will use it.
  llvm::DenseMap<Value, int> numUsers;
  /// By op, the bytes that it allocates less the bytes that it frees, if it
  /// runs next.
  std::vector<int64_t> growths;
  /// Ops that are ready, with the growth of their groups as cost. Gathers for
  /// one pass only are in a set of their own, with cost 0.
  FirstThatFits ready, readyGathers;
  /// Whether an op gathers a weight for one pass only.
  std::vector<bool> comesWithUser;
  std::vector<bool> isDone;

  /// Whether the backward pass computes `op` from values of the forward pass,
  /// some of them repeated, and from no gradient. The ops before it are known.
  bool followsFromRepeated(Operation *op) const {
    if (!isPart(op, Part::Backward) || isa<AccumulateOp>(op))
      return false;
    bool usesRepeated = false;
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      auto it = numbers.find(def);
      if (it == numbers.end() || isInForwardPass(def))
        continue;
      if (!comesWithUser[it->second])
        return false;
      usesRepeated |= !getCollectiveCost(def);
    }
    return usesRepeated;
  }

  /// Whether a path of dependences leads from op `from` to op `to`.
  bool reaches(int from, int to) const {
    if (isProgramOrder && to < from)
      return false;
    std::vector<bool> isSeen(ops.size());
    SmallVector<int> worklist{to};
    while (!worklist.empty()) {
      int number = worklist.pop_back_val();
      if (number == from)
        return true;
      // In program order, dependences lead to smaller numbers only.
      if (isSeen[number] || (isProgramOrder && number < from))
        continue;
      isSeen[number] = true;
      llvm::append_range(worklist, before[number]);
      llvm::append_range(worklist, readBefore[number]);
    }
    return false;
  }

  /// Adds anti-dependences: from the readers of an argument to the op whose
  /// result overwrites it.
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

  /// Computes the growths and the numbers of users.
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

  /// Op `number`, which is ready, after the gathers that come with it.
  SmallVector<int> getGroup(int number) const {
    llvm::SmallSetVector<int, 4> group;
    for (int other : before[number])
      if (!isDone[other])
        for (int member : getGroup(other))
          group.insert(member);
    group.insert(number);
    return SmallVector<int>(group.getArrayRef());
  }

  /// Updates the cost of op `number` if it is ready. The growth of a gather
  /// counts for its users.
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

  /// Enters op `number` into the sets. Users of a gather that comes with them
  /// do not depend on it any more.
  void becomeReady(int number) {
    update(number);
    if (comesWithUser[number])
      letGo(neededBy[number]);
  }

  /// Removes one dependence from each op of `waiting`.
  void letGo(ArrayRef<int> waiting) {
    for (int number : waiting)
      if (--numMissing[number] == 0)
        becomeReady(number);
  }

  /// Marks op `number` as done and updates the ops that depend on it.
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

  /// The next op; -1 if none is left.
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
