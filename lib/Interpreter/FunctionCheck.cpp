//===- FunctionCheck.cpp - One function against its global program --------===//
//
// The semantics of a step leave open which rows of the batch are a microbatch:
// each device takes the next ones of its own. The global program is therefore
// run on the same rows, with the sums over its microbatches and all values made
// from them. Over other rows they would be rounded differently, by an unknown
// bound.
//
//===----------------------------------------------------------------------===//

#include "FunctionCheck.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

LogicalResult FunctionCheck::run(InputKind kind) {
  FailureOr<GlobalRun> evaluated = GlobalRun::run(global, kind);
  if (failed(evaluated) || failed(checkSignature()))
    return failure();
  reference = std::move(*evaluated);
  for (BlockArgument argument : partitioned.getArguments())
    if (failed(feed(partitioned, argument,
                    global.getArgument(argument.getArgNumber()))))
      return failure();
  if (failed(runBlock(partitioned.getBody().front(), 0)))
    return failure();
  return checkResults();
}

LogicalResult FunctionCheck::runBlock(Block &block, int64_t run) {
  for (Operation &op : block.without_terminator()) {
    currentRun = run;
    ++summary.ops;
    auto loop = dyn_cast<AccumulateOp>(op);
    if (failed(loop                ? runLoop(loop)
               : isCollective(&op) ? runCollective(&op)
                                   : runCore(&op)))
      return failure();
  }
  return success();
}

LogicalResult FunctionCheck::checkSignature() {
  if (global.getNumArguments() != partitioned.getNumArguments() ||
      global.getNumResults() != partitioned.getNumResults())
    return partitioned.emitOpError("has another number of arguments or "
                                   "results than in the global program");
  return success();
}

LogicalResult FunctionCheck::runLoop(AccumulateOp loop) {
  auto id = loop->getAttrOfType<IntegerAttr>(idAttrName);
  Value known = id ? reference.find(id.getInt()) : Value();
  auto source = known ? known.getDefiningOp<AccumulateOp>() : AccumulateOp();
  if (!source)
    return loop.emitOpError("is not in the global program");
  for (Value operand : loop.getOperands())
    if (!values.count(operand))
      return loop.emitOpError("has an operand that is no value of the global "
                              "program");
  FailureOr<SmallVector<SmallVector<int64_t>>> rows =
      findRows(loop, loop.getOperands()[0], source, 0, loop.getRows());
  if (failed(rows) || failed(reference.regroup(source, *rows)))
    return failure();

  SmallVector<DeviceTensors> sums(loop.getNumResults());
  SmallVector<RoundingBound> bounds(loop.getNumResults());
  auto count = static_cast<int64_t>(loop.getCount());
  for (int64_t run = 0; run < count; ++run) {
    ArrayRef<int64_t> rowsOfRun = (*rows)[run];
    if (failed(reference.runBody(source, {run, rowsOfRun})))
      return failure();
    for (auto [index, operand] : llvm::enumerate(loop.getOperands()))
      if (failed(takeRows(loop, operand, loop.getSlices()[index], source, index,
                          getLocalRows(loop.getRows(), run), rowsOfRun, run)))
        return failure();
    if (failed(runBlock(loop.getBody().front(), run)))
      return failure();
    for (auto [index, summand] :
         llvm::enumerate(loop.getYield().getOperands())) {
      const DeviceTensors &terms = tensors[summand];
      DeviceTensors &sum = sums[index];
      if (run == 0)
        sum.assign(terms.size(), Tensor(terms.front().shape, 0));
      for (auto [total, term] : llvm::zip_equal(sum, terms))
        for (auto [element, value] : llvm::zip_equal(total.data, term.data))
          element += value;
      RoundingBound bound;
      bound.isKnown = false;
      if (auto placed = values.find(summand); placed != values.end())
        bound = placed->second.bound;
      bounds[index].magnitude += bound.magnitude;
      bounds[index].quantum =
          run == 0 ? bound.quantum
                   : std::min(bounds[index].quantum, bound.quantum);
      bounds[index].roundings =
          std::max(bounds[index].roundings, bound.roundings + count);
      bounds[index].isKnown &= bound.isKnown;
    }
  }
  for (auto [index, summand] : llvm::enumerate(loop.getYield().getOperands())) {
    Value result = loop.getResult(index);
    tensors[result] = std::move(sums[index]);
    auto placed = values.find(summand);
    if (placed == values.end())
      continue;
    Tracked tracked{source.getResult(index), placed->second.placement,
                    bounds[index]};
    if (failed(check(loop, result, std::move(tracked))))
      return failure();
  }
  return success();
}

LogicalResult FunctionCheck::checkResults() {
  Operation *terminator = partitioned.getBody().front().getTerminator();
  Operation *source = global.getBody().front().getTerminator();
  for (auto [index, operand] : llvm::enumerate(terminator->getOperands())) {
    auto sharding =
        partitioned.getResultAttrOfType<ShardingAttr>(index, shardingAttrName);
    if (!sharding)
      return partitioned.emitOpError("result ")
             << index << " has no `shardc.sharding`";
    if (failed(checkResult(terminator, operand, source->getOperand(index),
                           sharding)))
      return failure();
  }
  return success();
}
