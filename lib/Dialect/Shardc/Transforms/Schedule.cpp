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

#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Analysis/WireBytes.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace shardc {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Orders the ops of one block.
class Scheduler {
public:
  explicit Scheduler(Block &block) : block(block) {
    for (Operation &op : block.without_terminator())
      ops.push_back(&op);
  }

  void run() {
    for (Operation *op : ops)
      for (Value operand : getUsedValues(op))
        if (Operation *def = operand.getDefiningOp())
          before[op].insert(def);
    if (auto function = dyn_cast<func::FuncOp>(block.getParentOp()))
      addAntiDependences(function);
    Operation *terminator = block.getTerminator();
    llvm::SmallSetVector<Operation *, 16> waiting(ops.begin(), ops.end());
    while (!waiting.empty()) {
      for (Operation *op : getGroup(pickNext(waiting.getArrayRef()))) {
        waiting.remove(op);
        done.insert(op);
        op->moveBefore(terminator);
      }
    }
  }

private:
  Block &block;
  SmallVector<Operation *> ops;
  /// What an op reads is made before, and what it overwrites is read.
  llvm::DenseMap<Operation *, llvm::SmallSetVector<Operation *, 4>> before;
  llvm::DenseMap<Operation *, SmallVector<Operation *, 4>> readBefore;
  llvm::SmallPtrSet<Operation *, 16> done;

  bool reaches(Operation *from, Operation *to) {
    llvm::SmallPtrSet<Operation *, 16> seen;
    SmallVector<Operation *> worklist{to};
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (op == from)
        return true;
      if (seen.insert(op).second) {
        llvm::append_range(worklist, before[op]);
        llvm::append_range(worklist, readBefore[op]);
      }
    }
    return false;
  }

  /// A result that takes its argument's place waits for the argument's readers.
  void addAntiDependences(func::FuncOp function) {
    llvm::StringMap<BlockArgument> arguments;
    for (BlockArgument argument : function.getArguments()) {
      Attribute role =
          function.getArgAttr(argument.getArgNumber(), "shardc.role");
      if (auto parameter = dyn_cast_or_null<ParameterAttr>(role))
        arguments[parameter.getName().getValue()] = argument;
      else if (auto state = dyn_cast_or_null<StateAttr>(role))
        arguments[state.getName().getValue()] = argument;
    }
    Operation *terminator = block.getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      auto name = function.getResultAttrOfType<StringAttr>(
          operand.getOperandNumber(), "shardc.result");
      Operation *update = operand.get().getDefiningOp();
      if (!name || !update || !arguments.count(name.getValue()))
        continue;
      BlockArgument argument = arguments[name.getValue()];
      for (Operation *user : argument.getUsers()) {
        Operation *reader = getUserInBlock(argument, user);
        if (reader != update && reader != terminator &&
            !reaches(update, reader))
          readBefore[update].push_back(reader);
      }
    }
  }

  /// Bytes that running `op` allocates, less those it frees.
  int64_t getGrowth(Operation *op) {
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
        return user == op || done.contains(user);
      });
      if (operand.getDefiningOp() && isLastUse)
        growth -= getNumBytes(operand.getType());
    }
    return growth;
  }

  static bool comesWithUser(Operation *op) {
    return op->hasAttr("shardc.gathered_for") && getCollectiveCost(op);
  }

  bool isReady(Operation *op) {
    auto isDone = [&](Operation *other) { return done.contains(other); };
    return llvm::all_of(readBefore[op], isDone) &&
           llvm::all_of(before[op], [&](Operation *other) {
             return isDone(other) || (comesWithUser(other) && isReady(other));
           });
  }

  /// What `op`, which is ready, takes along, and the op itself.
  SmallVector<Operation *> getGroup(Operation *op) {
    llvm::SmallSetVector<Operation *, 4> group;
    for (Operation *other : before[op])
      if (!done.contains(other))
        for (Operation *member : getGroup(other))
          group.insert(member);
    group.insert(op);
    return group.takeVector();
  }

  Operation *pickNext(ArrayRef<Operation *> waiting) {
    Operation *first = nullptr;
    for (Operation *op : waiting) {
      if (comesWithUser(op) || !isReady(op))
        continue;
      if (!first)
        first = op;
      int64_t growth = 0;
      for (Operation *member : getGroup(op))
        growth += getGrowth(member);
      if (growth <= 0)
        return op;
    }
    if (first)
      return first;
    return *llvm::find_if(waiting, [&](Operation *op) { return isReady(op); });
  }
};

struct SchedulePass : shardc::impl::SchedulePassBase<SchedulePass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        for (Block *block : getBlocks(function))
          Scheduler(*block).run();
  }
};

} // namespace
