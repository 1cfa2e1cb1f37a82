//===- PlanMemory.cpp - Give every buffer its place in the arena ----------===//
//
// Arguments come first, at the same offsets in all functions; what lives inside
// a step is packed behind them, per function. A new parameter or state takes
// its argument's place; a kernel's result takes the place of an operand that
// ends there, where the kernel may work in place. What a loop sums up has one
// place from the first run on; the rest of its body is used again in each run.
//
//===----------------------------------------------------------------------===//

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/MemoryPlan.h"
#include "shardc/Analysis/MemoryReport.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace shardc {
#define GEN_PASS_DEF_PLANMEMORYPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

/// Name of a function argument by its role; empty without one.
static StringRef getArgName(func::FuncOp function, unsigned index) {
  Attribute role = function.getArgAttr(index, "shardc.role");
  if (auto parameter = dyn_cast_or_null<ParameterAttr>(role))
    return parameter.getName().getValue();
  if (auto state = dyn_cast_or_null<StateAttr>(role))
    return state.getName().getValue();
  if (auto input = dyn_cast_or_null<InputAttr>(role))
    return input.getName().getValue();
  if (auto label = dyn_cast_or_null<LabelAttr>(role))
    return label.getName().getValue();
  return "";
}

/// Whether result `result` of `op` may be written over operand `operand`.
static bool mayReplace(Operation *op, unsigned operand, unsigned result) {
  if (auto kernel = dyn_cast<KernelOp>(op))
    return mayUpdateInPlace(kernel, operand, result);
  if (auto gemm = dyn_cast<GemmOp>(op))
    return gemm.getSum() == op->getOperand(operand);
  return isa<AllReduceOp>(op) && operand == result;
}

namespace {

/// Plans one function.
class FunctionMemory {
public:
  FunctionMemory(func::FuncOp function,
                 const llvm::StringMap<int64_t> &argumentOffsets, int64_t base)
      : function(function), argumentOffsets(argumentOffsets), base(base) {}

  /// Returns the bytes of the arena that the function uses.
  int64_t run() {
    donateArguments();
    function.walk([&](AccumulateOp loop) { placeSums(loop); });
    Liveness liveness(function);
    findPlaces(liveness);
    MemoryPlan plan(base);
    // One buffer per place, over the life of all values in it.
    llvm::MapVector<Value, std::pair<int64_t, int64_t>> ranges;
    int64_t end = liveness.getNumSteps();
    forEachOp([&](Operation &op) {
      for (Value value : op.getResults()) {
        Value place = getPlace(value);
        if (isa<BlockArgument>(place))
          continue;
        auto [it, isNew] = ranges.insert({place, {end, 0}});
        auto &range = it->second;
        range.first = std::min(range.first, liveness.getFirst(value));
        range.second = std::max(range.second, liveness.getLast(value));
      }
    });
    llvm::DenseMap<Value, unsigned> numbers;
    for (auto &[value, range] : ranges)
      numbers[value] = plan.addBuffer(getNumBytes(value.getType()), range.first,
                                      range.second);
    plan.place();
    annotate([&](Value value) {
      Value place = getPlace(value);
      if (auto argument = dyn_cast<BlockArgument>(place))
        return getArgumentOffset(argument);
      return plan.getOffset(numbers.lookup(place));
    });
    function->setAttr("shardc.peak_bytes", getI64(plan.getEnd()));
    return plan.getEnd();
  }

private:
  func::FuncOp function;
  const llvm::StringMap<int64_t> &argumentOffsets;
  int64_t base;
  /// From a value to the one whose place it takes.
  llvm::DenseMap<Value, Value> places;

  void forEachOp(llvm::function_ref<void(Operation &)> callback) {
    for (Block *block : getBlocks(function))
      for (Operation &op : *block)
        callback(op);
  }

  IntegerAttr getI64(int64_t value) {
    return Builder(function.getContext()).getI64IntegerAttr(value);
  }

  int64_t getArgumentOffset(BlockArgument argument) {
    return argumentOffsets.lookup(
        getArgName(function, argument.getArgNumber()));
  }

  Value getPlace(Value value) {
    while (Value next = places.lookup(value))
      value = next;
    return value;
  }

  /// The argument whose next value result `index` is; null for other results.
  BlockArgument getDonor(unsigned index) {
    auto name =
        function.getResultAttrOfType<StringAttr>(index, "shardc.result");
    if (!name)
      return nullptr;
    for (BlockArgument argument : function.getArguments()) {
      Attribute role =
          function.getArgAttr(argument.getArgNumber(), "shardc.role");
      if (isa_and_nonnull<ParameterAttr, StateAttr>(role) &&
          getArgName(function, argument.getArgNumber()) == name.getValue())
        return argument;
    }
    return nullptr;
  }

  /// Whether `value`, the next value of `argument`, may be written over it.
  bool mayDonate(BlockArgument argument, Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || places.count(value))
      return false;
    for (OpOperand &use : argument.getUses()) {
      Operation *user = use.getOwner();
      if (user->isBeforeInBlock(op))
        continue;
      unsigned result = cast<OpResult>(value).getResultNumber();
      if (user != op || !mayReplace(op, use.getOperandNumber(), result))
        return false;
    }
    return true;
  }

  /// Gives the sums of a loop one place each: that of the result.
  void placeSums(AccumulateOp loop) {
    for (auto [result, sum, operand] :
         llvm::zip_equal(loop.getResults(), loop.getSums(),
                         loop.getYield()->getOpOperands())) {
      places[sum] = result;
      if (!mayDonate(sum, operand.get()))
        operand.set(buildCopy(operand.get(), loop.getYield()));
      places[operand.get()] = sum;
    }
  }

  /// A kernel that copies `value`, before the terminator.
  static Value buildCopy(Value value, Operation *terminator) {
    OpBuilder builder(terminator);
    Location loc = value.getLoc();
    auto kernel = builder.create<KernelOp>(loc, TypeRange{value.getType()},
                                           ValueRange{value});
    kernel->setAttr("shardc.part",
                    PartAttr::get(builder.getContext(), Part::Update));
    Block *body = builder.createBlock(&kernel.getBody());
    Value argument = body->addArgument(value.getType(), loc);
    builder.create<YieldOp>(loc, ValueRange{argument});
    return kernel.getResult(0);
  }

  /// Makes every new parameter and state a value that takes its argument's
  /// place, by a copy at the end where the data flow does not allow it.
  void donateArguments() {
    Operation *terminator = function.getBody().front().getTerminator();
    SmallVector<std::pair<OpOperand *, BlockArgument>> left;
    for (OpOperand &operand : terminator->getOpOperands()) {
      BlockArgument donor = getDonor(operand.getOperandNumber());
      if (!donor) {
        // A result has a buffer of its own, which no argument shares.
        if (isa<BlockArgument>(operand.get()))
          operand.set(buildCopy(operand.get(), terminator));
        continue;
      }
      Value value = operand.get();
      if (value == donor)
        continue;
      if (mayDonate(donor, value))
        places[value] = donor;
      else
        left.push_back({&operand, donor});
    }
    // Arguments that move to other places are saved first.
    for (auto &[operand, donor] : left)
      if (isa<BlockArgument>(getPlace(operand->get())))
        operand->set(buildCopy(operand->get(), terminator));
    for (auto &[operand, donor] : left) {
      operand->set(buildCopy(operand->get(), terminator));
      places[operand->get()] = donor;
    }
  }

  /// Lets results take the places of operands that end with their op.
  void findPlaces(const Liveness &liveness) {
    forEachOp([&](Operation &op) {
      if (!isa<KernelOp, AllReduceOp>(op))
        return;
      llvm::SmallDenseSet<Value> taken;
      for (OpResult result : op.getResults()) {
        if (places.count(result))
          continue;
        for (OpOperand &operand : op.getOpOperands()) {
          Value value = operand.get();
          bool endsHere = !isa<BlockArgument>(getPlace(value)) &&
                          endsAt(getPlace(value), &op, liveness);
          bool isOnce = llvm::count(op.getOperands(), value) == 1;
          if (endsHere && isOnce && !taken.contains(getPlace(value)) &&
              getNumBytes(value.getType()) == getNumBytes(result.getType()) &&
              mayReplace(&op, operand.getOperandNumber(),
                         result.getResultNumber())) {
            taken.insert(getPlace(value));
            places[result] = value;
            break;
          }
        }
      }
    });
  }

  /// Whether nothing in the place `place` is needed after `op`.
  bool endsAt(Value place, Operation *op, const Liveness &liveness) {
    int64_t step = liveness.getStep(op);
    if (liveness.getLast(place) > step)
      return false;
    for (auto &[value, other] : places)
      if (getPlace(value) == place && value.getDefiningOp() != op &&
          liveness.getLast(value) > step)
        return false;
    return true;
  }

  void annotate(llvm::function_ref<int64_t(Value)> getOffset) {
    for (BlockArgument argument : function.getArguments())
      function.setArgAttr(argument.getArgNumber(), "shardc.offset",
                          getI64(getArgumentOffset(argument)));
    forEachOp([&](Operation &op) {
      if (op.getNumResults() == 0)
        return;
      SmallVector<int64_t> offsets;
      for (Value result : op.getResults())
        offsets.push_back(getOffset(result));
      op.setAttr("shardc.offsets",
                 DenseI64ArrayAttr::get(op.getContext(), offsets));
    });
  }
};

struct PlanMemoryPass : shardc::impl::PlanMemoryPassBase<PlanMemoryPass> {
  using PlanMemoryPassBase::PlanMemoryPassBase;

  void runOnOperation() override {
    // Offsets of arguments, by name: the same in every function.
    llvm::StringMap<int64_t> offsets, sizes;
    int64_t base = 0;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      for (BlockArgument argument : function.getArguments()) {
        StringRef name = getArgName(function, argument.getArgNumber());
        int64_t bytes = getNumBytes(argument.getType());
        if (name.empty()) {
          function.emitError("argument ")
              << argument.getArgNumber() << " has no shardc.role";
          return signalPassFailure();
        }
        auto [it, isNew] = sizes.try_emplace(name, bytes);
        if (!isNew && it->second != bytes) {
          function.emitError("argument \"")
              << name << "\" has " << bytes << " bytes here and " << it->second
              << " in another program";
          return signalPassFailure();
        }
        if (isNew) {
          offsets[name] = base;
          base += alignBytes(bytes);
        }
      }
    }
    int64_t arena = base;
    for (auto function : getOperation().getOps<func::FuncOp>())
      arena = std::max(arena, FunctionMemory(function, offsets, base).run());
    getOperation()->setAttr("shardc.arena_bytes",
                            Builder(&getContext()).getI64IntegerAttr(arena));
    if (memoryLimit > 0 && arena > memoryLimit)
      refuse(arena);
  }

  /// Says what does not fit, the largest buffers first.
  void refuse(int64_t arena) {
    MemoryReport report(getOperation());
    {
      InFlightDiagnostic error = getOperation().emitError()
                                 << "a device needs " << arena
                                 << " bytes of memory and has "
                                 << int64_t(memoryLimit);
      attachLargest(error, report);
    }
    signalPassFailure();
  }
};

} // namespace
