//===- CheckContents.cpp - Whether memory holds what is read --------------===//

#include "CheckContents.h"

#include "shardc/Analysis/FunctionMemory.h"
#include "shardc/Analysis/Liveness.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

#include <map>

using namespace mlir;
using namespace shardc;

namespace {

class Contents {
public:
  explicit Contents(func::FuncOp function) : function(function) {}
  LogicalResult check();

private:
  struct Bytes {
    int64_t begin, end;
    bool operator==(const Bytes &other) const {
      return begin == other.begin && end == other.end;
    }
    bool overlaps(const Bytes &other) const {
      return begin < other.end && other.begin < end;
    }
  };
  struct Held {
    int64_t end;
    Value value;
  };

  LogicalResult run(Block &block);
  LogicalResult run(Operation *op);
  LogicalResult run(RowsOp rows);
  LogicalResult run(AccumulateOp loop);
  LogicalResult run(CollectiveStartOp start);
  LogicalResult run(CollectiveWaitOp wait);
  LogicalResult finish(Operation *terminator);
  LogicalResult read(Operation *reader, ValueRange values);
  LogicalResult checkReplaced(Operation *op);
  void place(Value value, int64_t begin);
  void placeResults(Operation *op);
  void write(Value value);

  func::FuncOp function;
  llvm::DenseMap<Value, Bytes> places;
  /// From a value to the one that it is a part of.
  llvm::DenseMap<Value, Value> wholes;
  /// What was written last, by the first byte. None overlaps another.
  std::map<int64_t, Held> held;
  KernelNests nests;
};

void Contents::place(Value value, int64_t begin) {
  places[value] = {begin, begin + getNumBytes(value.getType())};
}

void Contents::placeResults(Operation *op) {
  if (op->getNumResults() == 0)
    return;
  auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName);
  for (auto [result, offset] :
       llvm::zip_equal(op->getResults(), offsets.asArrayRef()))
    place(result, offset);
}

void Contents::write(Value value) {
  Bytes bytes = places.lookup(value);
  if (bytes.begin == bytes.end)
    return;
  auto next = held.lower_bound(bytes.begin);
  if (next != held.begin() && std::prev(next)->second.end > bytes.begin)
    --next;
  while (next != held.end() && next->first < bytes.end)
    next = held.erase(next);
  held[bytes.begin] = {bytes.end, value};
}

/// Checks that all bytes of `values` are those that were written for them.
LogicalResult Contents::read(Operation *reader, ValueRange values) {
  for (Value value : values) {
    while (Value whole = wholes.lookup(value))
      value = whole;
    Bytes bytes = places.lookup(value);
    if (bytes.begin == bytes.end)
      continue;
    auto found = held.find(bytes.begin);
    if (found != held.end() && found->second.value == value)
      continue;
    return reader->emitOpError("reads ")
           << bytes.end - bytes.begin << " bytes at offset " << bytes.begin
           << " that something else has been written over since";
  }
  return success();
}

/// Checks that results that lie over operands of their op may do so.
LogicalResult Contents::checkReplaced(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    Value whole = operand.get();
    while (Value next = wholes.lookup(whole))
      whole = next;
    Bytes read = places.lookup(whole);
    for (OpResult result : op->getResults()) {
      Bytes written = places.lookup(result);
      if (!written.overlaps(read))
        continue;
      if (!(written == read) || !mayReplace(op, operand.getOperandNumber(),
                                            result.getResultNumber(), nests))
        return op->emitOpError("writes result ")
               << result.getResultNumber() << " over operand "
               << operand.getOperandNumber() << ", which it still reads";
    }
  }
  return success();
}

LogicalResult Contents::run(RowsOp rows) {
  Value operand = rows.getOperand(), result = rows.getResult();
  placeResults(rows);
  wholes[result] = operand;
  int64_t expected = places.lookup(operand).begin +
                     int64_t(rows.getNumber()) * getNumBytes(result.getType());
  if (int64_t begin = places.lookup(result).begin; begin != expected)
    return rows.emitOpError("is at offset ")
           << begin << ", and these rows of its operand at " << expected;
  return success();
}

LogicalResult Contents::run(AccumulateOp loop) {
  placeResults(loop);
  for (auto [slice, operand] :
       llvm::zip_equal(loop.getSlices(), loop.getOperands()))
    wholes[slice] = operand;
  for (auto [sum, result] :
       llvm::zip_equal(loop.getSums(), loop.getResults())) {
    places[sum] = places.lookup(result);
    write(sum);
  }
  // The second run reads what the first has left.
  for (int i = 0; i < 2; ++i) {
    if (failed(read(loop, loop.getOperands())) ||
        failed(run(loop.getBody().front())) ||
        failed(read(loop, loop.getYield().getOperands())))
      return failure();
    for (auto [sum, next] :
         llvm::zip_equal(loop.getSums(), loop.getYield().getOperands())) {
      if (!(places.lookup(sum) == places.lookup(next)))
        return loop.getYield().emitOpError("gives a sum at offset ")
               << places.lookup(next).begin << ", which is at "
               << places.lookup(sum).begin << " in the loop";
      write(sum);
    }
  }
  for (Value result : loop.getResults())
    write(result);
  return read(loop, loop.getResults());
}

LogicalResult Contents::run(CollectiveStartOp start) {
  CollectiveWaitOp wait = start.getWait();
  placeResults(wait);
  if (failed(read(start, start.getOperands())))
    return failure();
  for (Value result : wait.getResults())
    write(result);
  return success();
}

/// Until then the collective reads its operands and writes its results.
LogicalResult Contents::run(CollectiveWaitOp wait) {
  CollectiveStartOp start = wait.getStart();
  bool isInPlace = isa<AllReduceOp>(start.getCollective());
  for (auto [number, operand] : llvm::enumerate(start.getOperands()))
    if (!isInPlace ||
        !(places.lookup(operand) == places.lookup(wait.getResult(number))))
      if (failed(read(start, operand)))
        return failure();
  return read(wait, wait.getResults());
}

/// The result of the function, and what other programs read: parameters, their
/// copies and states.
LogicalResult Contents::finish(Operation *terminator) {
  if (failed(read(terminator, terminator->getOperands())))
    return failure();
  std::vector<BlockArgument> donors = getDonors(function);
  llvm::DenseSet<Value> replaced;
  for (auto [donor, operand] :
       llvm::zip_equal(donors, terminator->getOperands())) {
    if (!donor)
      continue;
    if (!(places.lookup(donor) == places.lookup(operand)))
      return terminator->emitOpError("returns the next value of an argument at "
                                     "offset ")
             << places.lookup(operand).begin << ", not at its place, offset "
             << places.lookup(donor).begin;
    replaced.insert(donor);
  }
  for (BlockArgument argument : function.getArguments())
    if (isa_and_nonnull<ParameterAttr, StateAttr, CopyAttr>(
            function.getArgAttr(argument.getArgNumber(), roleAttrName)) &&
        !replaced.contains(argument) && failed(read(terminator, argument)))
      return failure();
  return success();
}

LogicalResult Contents::run(Operation *op) {
  if (auto rows = dyn_cast<RowsOp>(op))
    return run(rows);
  if (auto loop = dyn_cast<AccumulateOp>(op))
    return run(loop);
  if (auto start = dyn_cast<CollectiveStartOp>(op))
    return run(start);
  if (auto wait = dyn_cast<CollectiveWaitOp>(op))
    return run(wait);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return op->getParentOp() == function ? finish(op) : success();
  placeResults(op);
  if (failed(read(op, op->getOperands())) || failed(checkReplaced(op)))
    return failure();
  for (Value result : op->getResults())
    write(result);
  return read(op, op->getResults());
}

LogicalResult Contents::run(Block &block) {
  for (Operation &op : block)
    if (failed(run(&op)))
      return failure();
  return success();
}

LogicalResult Contents::check() {
  for (BlockArgument argument : function.getArguments()) {
    place(argument, function
                        .getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                       offsetAttrName)
                        .getInt());
    write(argument);
  }
  return run(function.getBody().front());
}

} // namespace

LogicalResult shardc::checkContents(func::FuncOp function) {
  return Contents(function).check();
}
