//===- ReuseDistances.cpp - Bytes between accesses of a step --------------===//

#include "ReuseDistances.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"

using namespace mlir;
using namespace shardc;

ReuseDistances::ReuseDistances(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (auto offset = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), offsetAttrName))
      places[argument] = offset.getInt();
}

void ReuseDistances::place(Operation *op) {
  if (auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(offsetsAttrName))
    for (auto [result, offset] :
         llvm::zip(op->getResults(), offsets.asArrayRef()))
      places[result] = offset;
  if (auto start = dyn_cast<CollectiveStartOp>(op)) {
    for (auto [argument, operand] : llvm::zip_equal(
             start.getBody().front().getArguments(), start.getOperands()))
      aliases[argument] = operand;
  } else if (auto wait = dyn_cast<CollectiveWaitOp>(op)) {
    Block &body = wait.getStart().getBody().front();
    for (auto [result, yielded] : llvm::zip_equal(
             wait.getResults(), body.getTerminator()->getOperands()))
      aliases[result] = yielded;
  } else if (auto rows = dyn_cast<RowsOp>(op)) {
    aliases[rows.getResult()] = rows.getOperand();
  } else if (auto loop = dyn_cast<AccumulateOp>(op)) {
    auto arguments = loop.getBody().front().getArguments();
    for (auto [argument, operand] : llvm::zip(arguments, loop.getOperands()))
      aliases[argument] = operand;
    // The sums so far lie where the results do.
    for (auto [sum, result] :
         llvm::zip(arguments.drop_front(loop.getOperands().size()),
                   loop.getResults()))
      aliases[sum] = result;
  }
}

Value ReuseDistances::getRoot(Value value) const {
  for (auto it = aliases.find(value); it != aliases.end();
       it = aliases.find(value))
    value = it->second;
  return value;
}

std::optional<int64_t> ReuseDistances::getOffset(Value value) const {
  auto place = places.find(getRoot(value));
  return place == places.end() ? std::nullopt : std::optional(place->second);
}

int64_t ReuseDistances::getPlace(Value value) {
  if (std::optional<int64_t> offset = getOffset(value))
    return *offset;
  return -1 -
         static_cast<int64_t>(
             numbers.try_emplace(getRoot(value), numbers.size()).first->second);
}

double ReuseDistances::access(Value value, double bytes) {
  Place &place = accesses[getPlace(value)];
  accessed += bytes;
  footprint += std::max(0.0, bytes - place.bytes);
  place.bytes = std::max(place.bytes, bytes);
  double distance = std::min(accessed - place.last, footprint);
  place.last = accessed;
  return distance;
}
