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

#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

#include <numeric>

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
    isDone.resize(ops.size());
  }

  void run() {
    for (auto [number, op] : llvm::enumerate(ops))
      for (Value operand : getUsedValues(op))
        if (Operation *def = operand.getDefiningOp())
          before[number].insert(numbers.lookup(def));
    if (auto function = dyn_cast<func::FuncOp>(block.getParentOp()))
      addAntiDependences(function);
    Operation *terminator = block.getTerminator();
    std::vector<int> waiting(ops.size());
    std::iota(waiting.begin(), waiting.end(), 0);
    while (!waiting.empty()) {
      for (int number : getGroup(pickNext(waiting))) {
        isDone[number] = true;
        ops[number]->moveBefore(terminator);
      }
      llvm::erase_if(waiting, [&](int number) { return isDone[number]; });
    }
  }

private:
  Block &block;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, int> numbers;
  /// What an op reads is made before, and what it overwrites is read.
  std::vector<llvm::SmallSetVector<int, 4>> before;
  std::vector<SmallVector<int, 4>> readBefore;
  /// Whether an op gathers a weight for one pass only.
  std::vector<bool> comesWithUser;
  std::vector<bool> isDone;

  bool reaches(int from, int to) const {
    std::vector<bool> isSeen(ops.size());
    SmallVector<int> worklist{to};
    while (!worklist.empty()) {
      int number = worklist.pop_back_val();
      if (number == from)
        return true;
      if (isSeen[number])
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
        if (reader != number && !reaches(number, reader))
          readBefore[number].push_back(reader);
      }
    }
  }

  /// Bytes that running `op` allocates, less those it frees.
  int64_t getGrowth(Operation *op) const {
    int64_t growth = 0;
    for (Value result : op->getResults()) {
      bool isDonated = llvm::any_of(result.getUsers(), [](Operation *user) {
        return user->hasTrait<OpTrait::IsTerminator>();
      });
      if (!isDonated)
        growth += getNumBytes(result.getType());
    }
    llvm::SmallSetVector<Value, 4> operands;
    for (Value value : getUsedValues(op))
      operands.insert(value);
    for (Value operand : operands) {
      bool isLastUse = llvm::all_of(operand.getUsers(), [&](Operation *user) {
        user = getUserInBlock(operand, user);
        return user == op ||
               (user != block.getTerminator() && isDone[numbers.lookup(user)]);
      });
      if (operand.getDefiningOp() && isLastUse)
        growth -= getNumBytes(operand.getType());
    }
    return growth;
  }

  bool isReady(int number) const {
    return llvm::all_of(readBefore[number],
                        [&](int other) { return isDone[other]; }) &&
           llvm::all_of(before[number], [&](int other) {
             return isDone[other] || (comesWithUser[other] && isReady(other));
           });
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

  int pickNext(ArrayRef<int> waiting) const {
    std::optional<int> first;
    for (int number : waiting) {
      if (comesWithUser[number] || !isReady(number))
        continue;
      if (!first)
        first = number;
      int64_t growth = 0;
      for (int member : getGroup(number))
        growth += getGrowth(ops[member]);
      if (growth <= 0)
        return number;
    }
    if (first)
      return *first;
    return *llvm::find_if(waiting, [&](int number) { return isReady(number); });
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
