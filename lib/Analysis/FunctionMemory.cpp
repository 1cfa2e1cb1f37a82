//===- FunctionMemory.cpp - Places for the values of a function -----------===//

#include "shardc/Analysis/FunctionMemory.h"

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-plan-memory"

using namespace mlir;
using namespace shardc;

/// The op that writes `value`: the start of a collective for its results.
static Operation *getWriter(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto wait = dyn_cast_or_null<CollectiveWaitOp>(op))
    return wait.getStart();
  return op;
}

/// The results that have a place in memory.
static ResultRange getTensors(Operation *op) {
  return isa<CollectiveStartOp>(op) ? op->getResults().drop_front()
                                    : op->getResults();
}

static IntegerAttr getI64(Operation *op, int64_t value) {
  return Builder(op->getContext()).getI64IntegerAttr(value);
}

FailureOr<ArgumentLayout>
shardc::placeArguments(ArrayRef<func::FuncOp> functions) {
  ArgumentLayout places;
  llvm::StringMap<int64_t> sizes;
  for (func::FuncOp function : functions)
    for (BlockArgument argument : function.getArguments()) {
      StringRef name = getRoleName(function, argument.getArgNumber());
      int64_t bytes = getNumBytes(argument.getType());
      if (name.empty())
        return LogicalResult(function.emitError("argument ")
                             << argument.getArgNumber()
                             << " has no shardc.role");
      auto [it, isNew] = sizes.try_emplace(name, bytes);
      if (!isNew && it->second != bytes)
        return LogicalResult(function.emitError("argument \"")
                             << name << "\" has " << bytes << " bytes here and "
                             << it->second << " in another program");
      if (!isNew)
        continue;
      LLVM_DEBUG(llvm::dbgs() << "argument \"" << name << "\": " << bytes
                              << " bytes at " << places.bytes << '\n');
      places.offsets[name] = places.bytes;
      places.bytes += alignBytes(bytes);
    }
  return places;
}

int64_t FunctionMemory::plan(int64_t enough) {
  donateArguments();
  function.walk([&](AccumulateOp loop) { placeSums(loop); });
  for (auto rows : function.getBody().front().getOps<RowsOp>())
    places[rows.getResult()] = rows.getOperand();
  Liveness liveness(function);
  findPlaces(liveness);
  // One buffer per place, over the life of all values in it.
  llvm::MapVector<Value, std::pair<int64_t, int64_t>> ranges;
  int64_t end = liveness.getNumSteps();
  forEachOp([&](Operation &op) {
    for (Value value : getTensors(&op)) {
      Value place = getPlace(value);
      if (isa<BlockArgument>(place))
        continue;
      auto [it, isNew] = ranges.insert({place, {end, 0}});
      auto &range = it->second;
      range.first = std::min(range.first, liveness.getFirst(value));
      range.second = std::max(range.second, liveness.getLast(value));
    }
  });
  for (auto &[value, range] : ranges)
    buffers[value] = memory.addBuffer(getNumBytes(value.getType()), range.first,
                                      range.second);
  if (int64_t least = memory.getLowerBound(); least > enough)
    return least;
  findRuns();
  memory.place();
  return memory.getEnd();
}

int64_t shardc::getPlannedBytes(func::FuncOp function, int64_t enough) {
  FunctionMemory memory(function, {}, /*base=*/0);
  int64_t bytes = memory.plan(enough);
  memory.removeCopies();
  return bytes;
}

int64_t FunctionMemory::getArgumentOffset(BlockArgument argument) {
  return argumentOffsets.lookup(getRoleName(function, argument.getArgNumber()));
}

int64_t FunctionMemory::getOffset(Value value) {
  if (auto rows = value.getDefiningOp<RowsOp>())
    return getOffset(rows.getOperand()) +
           static_cast<int64_t>(rows.getNumber()) * getNumBytes(rows.getType());
  Value place = getPlace(value);
  if (auto argument = dyn_cast<BlockArgument>(place))
    return getArgumentOffset(argument);
  return memory.getOffset(buffers.lookup(place));
}

void FunctionMemory::forEachOp(llvm::function_ref<void(Operation &)> callback) {
  for (Block *block : blocks)
    for (Operation &op : *block)
      callback(op);
}

Value FunctionMemory::getPlace(Value value) const {
  while (Value next = places.lookup(value))
    value = next;
  return value;
}

std::vector<BlockArgument> shardc::getDonors(func::FuncOp function) {
  llvm::StringMap<BlockArgument> arguments = getArgumentsByName(function);
  std::vector<BlockArgument> donors;
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    BlockArgument donor;
    if (auto name =
            function.getResultAttrOfType<StringAttr>(index, resultAttrName))
      donor = arguments.lookup(name.getValue());
    if (donor && !isa<ParameterAttr, StateAttr, CopyAttr>(
                     function.getArgAttr(donor.getArgNumber(), roleAttrName)))
      donor = nullptr;
    donors.push_back(donor);
  }
  return donors;
}

bool shardc::mayReplace(Operation *op, unsigned operand, unsigned result,
                        KernelNests &nests) {
  if (auto kernel = dyn_cast<KernelOp>(op)) {
    auto [it, isNew] = nests.try_emplace(op);
    if (isNew)
      it->second = getKernelNests(kernel);
    return mayUpdateInPlace(kernel, it->second, operand, result);
  }
  if (auto gemm = dyn_cast<GemmOp>(op))
    return result == 0 && gemm.getSum() == op->getOperand(operand);
  auto start = dyn_cast<CollectiveStartOp>(op);
  return start && isa<AllReduceOp>(start.getCollective()) && operand == result;
}

/// Whether `value`, the next value of `argument`, may be written over it.
bool FunctionMemory::mayDonate(BlockArgument argument, Value value) {
  Operation *writer = getWriter(value);
  if (!writer || places.count(value))
    return false;
  unsigned result = cast<OpResult>(value).getResultNumber();
  return llvm::all_of(argument.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (user == writer)
      return mayReplace(writer, use.getOperandNumber(), result, nests);
    if (auto start = dyn_cast<CollectiveStartOp>(user))
      user = start.getWait();
    return getUserInBlock(argument, user)->isBeforeInBlock(writer);
  });
}

/// A kernel that copies `value`, before `terminator`.
static Value buildCopy(Value value, Operation *terminator) {
  OpBuilder builder(terminator);
  Location loc = value.getLoc();
  auto kernel = builder.create<KernelOp>(loc, TypeRange{value.getType()},
                                         ValueRange{value});
  kernel->setAttr(partAttrName,
                  PartAttr::get(builder.getContext(), Part::Update));
  Block *body = builder.createBlock(&kernel.getBody());
  Value argument = body->addArgument(value.getType(), loc);
  builder.create<YieldOp>(loc, ValueRange{argument});
  return kernel.getResult(0);
}

void FunctionMemory::copy(OpOperand &operand) {
  copied.emplace_back(&operand, operand.get());
  operand.set(buildCopy(operand.get(), operand.getOwner()));
}

void FunctionMemory::removeCopies() {
  for (auto [operand, value] : llvm::reverse(copied)) {
    Operation *kernel = operand->get().getDefiningOp();
    operand->set(value);
    kernel->erase();
  }
  copied.clear();
}

/// Gives the sums of a loop one place each: that of the result.
void FunctionMemory::placeSums(AccumulateOp loop) {
  for (auto [result, sum, operand] :
       llvm::zip_equal(loop.getResults(), loop.getSums(),
                       loop.getYield()->getOpOperands())) {
    places[sum] = result;
    if (!mayDonate(sum, operand.get()))
      copy(operand);
    places[operand.get()] = sum;
  }
}

/// Gives every new parameter and state the place of its argument, by a copy at
/// the end where the data flow requires it.
void FunctionMemory::donateArguments() {
  Operation *terminator = function.getBody().front().getTerminator();
  SmallVector<std::pair<OpOperand *, BlockArgument>> left;
  std::vector<BlockArgument> donors = getDonors(function);
  for (OpOperand &operand : terminator->getOpOperands()) {
    BlockArgument donor = donors[operand.getOperandNumber()];
    if (!donor) {
      // A result has a buffer of its own, which no argument shares.
      if (isa<BlockArgument>(operand.get()))
        copy(operand);
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
  // Arguments whose values go to other places are saved first.
  for (auto &[operand, donor] : left)
    if (isa<BlockArgument>(getPlace(operand->get())))
      copy(*operand);
  for (auto &[operand, donor] : left) {
    copy(*operand);
    places[operand->get()] = donor;
  }
}

/// Whether `op` reads `value` after all its other readers.
static bool isLastReader(Operation *op, Value value, const Liveness &liveness) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return user == op ||
           liveness.getEnd(getUserInBlock(value, user)) < liveness.getStep(op);
  });
}

/// The places that are free after `writer`, each with the operand in it.
SmallVector<FunctionMemory::FreedPlace>
FunctionMemory::getFreedPlaces(Operation *writer, const Liveness &liveness) {
  SmallVector<FreedPlace> freed;
  // Of collectives only a reduction works in place, and a GEMM adds to a sum.
  auto start = dyn_cast<CollectiveStartOp>(writer);
  if (start ? !isa<AllReduceOp>(start.getCollective())
            : !isa<KernelOp, GemmOp>(writer))
    return freed;
  llvm::SmallDenseMap<Value, int> counts;
  for (Value operand : writer->getOperands())
    ++counts[operand];
  for (auto [number, operand] : llvm::enumerate(writer->getOperands()))
    if (counts.lookup(operand) == 1)
      if (Value place = getPlace(operand);
          !isa<BlockArgument>(place) && isLastReader(writer, operand, liveness))
        freed.push_back({unsigned(number), place});
  return freed;
}

/// Lets results take the places of operands that end with their op.
void FunctionMemory::findPlaces(const Liveness &liveness) {
  // By place, the last step at which a value put into it so far is needed.
  llvm::DenseMap<Value, int64_t> ends;
  forEachOp([&](Operation &op) {
    ResultRange tensors = getTensors(&op);
    if (tensors.empty())
      return;
    Operation *writer = getWriter(tensors.front());
    SmallVector<FreedPlace> freed = getFreedPlaces(writer, liveness);
    for (OpResult result : tensors) {
      if (!places.count(result))
        for (auto [operand, place] : freed)
          if (ends.lookup(place) <= liveness.getEnd(writer) &&
              getNumBytes(place.getType()) == getNumBytes(result.getType()) &&
              mayReplace(writer, operand, result.getResultNumber(), nests)) {
            places[result] = writer->getOperand(operand);
            // No other result may take it through another operand.
            llvm::erase_if(freed, [taken = place](const FreedPlace &each) {
              return each.place == taken;
            });
            break;
          }
      int64_t &end = ends[getPlace(result)];
      end = std::max(end, liveness.getLast(result));
    }
  });
}

/// Makes the operands of each reducing collective adjacent, and its results.
void FunctionMemory::findRuns() {
  llvm::DenseSet<Value> inRun;
  auto addRuns = [&](ValueRange values) {
    SmallVector<unsigned> run;
    auto finish = [&] {
      if (run.size() > 1)
        memory.addRun(run);
      run.clear();
    };
    for (Value value : values) {
      Value place = getPlace(value);
      if (isa<BlockArgument>(place) || !inRun.insert(place).second)
        finish();
      else
        run.push_back(buffers.lookup(place));
    }
    finish();
  };
  forEachOp([&](Operation &op) {
    auto start = dyn_cast<CollectiveStartOp>(op);
    if (!start || isa<AllGatherOp>(start.getCollective()))
      return;
    addRuns(start.getOperands());
    addRuns(start.getWait().getResults());
  });
}

void FunctionMemory::annotate() {
  setArgAttrs(function, offsetAttrName, [&](unsigned index) {
    return getI64(function, getArgumentOffset(function.getArgument(index)));
  });
  forEachOp([&](Operation &op) {
    SmallVector<int64_t> offsets;
    for (Value result : getTensors(&op))
      offsets.push_back(getOffset(result));
    if (offsets.empty())
      return;
    op.setAttr(offsetsAttrName,
               DenseI64ArrayAttr::get(op.getContext(), offsets));
  });
  function->setAttr(peakBytesAttrName, getI64(function, memory.getEnd()));
}
