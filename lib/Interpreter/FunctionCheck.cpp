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

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Interpreter/Alignment.h"
#include "shardc/Interpreter/EvaluateOp.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace shardc;

static SmallVector<int64_t> getLocalRows(AccumulateOp loop, int64_t run) {
  return llvm::to_vector(
      llvm::seq(run * loop.getRows(), (run + 1) * loop.getRows()));
}

/// The rows of the global tensor behind the local rows `local` of all devices:
/// each once, ascending.
static SmallVector<int64_t> getGlobalRows(const Placement &placement,
                                          ArrayRef<int64_t> globalShape,
                                          ArrayRef<int64_t> local) {
  int64_t size = getStrides(globalShape)[0];
  std::map<int64_t, int> rows;
  for (const Tensor &indices : placement.indices)
    for (double index : takeRows(indices, local).data)
      if (index >= 0)
        rows[static_cast<int64_t>(index) / size] = 0;
  return llvm::map_to_vector(rows, [](auto &row) { return row.first; });
}

LogicalResult FunctionCheck::run(InputKind kind) {
  FailureOr<GlobalRun> evaluated = GlobalRun::run(global, kind);
  if (failed(evaluated) || failed(checkSignature()))
    return failure();
  reference = std::move(*evaluated);
  for (BlockArgument argument : partitioned.getArguments())
    if (failed(feed(argument)))
      return failure();
  if (failed(runBlock(partitioned.getBody().front(), 0)))
    return failure();
  return checkResults();
}

LogicalResult FunctionCheck::runBlock(Block &block, int64_t run) {
  for (Operation &op : block.without_terminator()) {
    ++summary.ops;
    auto loop = dyn_cast<AccumulateOp>(op);
    if (failed(loop                ? runLoop(loop)
               : isCollective(&op) ? runCollective(&op)
                                   : runCore(&op, run)))
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

LogicalResult FunctionCheck::feed(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  auto sharding =
      partitioned.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
  Value source = global.getArgument(index);
  if (!sharding)
    return mlir::emitError(argument.getLoc(), "argument ")
           << index << " has no `shardc.sharding`";
  Tracked tracked{source, place(sharding, source), {}};
  tensors[argument] = scatter(reference.get(source), tracked.placement);
  tracked.bound = measure(reference.get(source));
  values[argument] = std::move(tracked);
  return success();
}

Placement FunctionCheck::place(ShardingAttr sharding, Value source) {
  Layout layout = getLayout(sharding, devices.getMesh());
  if (auto reduce = source.getDefiningOp<ReduceOp>())
    layout.reduction = reduce.getKind();
  return getPlacement(
      layout, cast<RankedTensorType>(source.getType()).getShape(), devices);
}

LogicalResult FunctionCheck::runCollective(Operation *op) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Value result = op->getResult(index);
    tensors[result] = evaluateCollective(op, index, tensors[operand], devices);
    auto known = values.find(operand);
    if (known == values.end())
      continue;
    if (failed(checkReduction(op, known->second)))
      return failure();
    Tracked tracked{known->second.value,
                    movePlacement(op, index, known->second.placement, devices),
                    known->second.bound};
    tracked.bound.roundings += static_cast<double>(
        devices.getMesh().getNumShards(getCollectiveAxes(op, devices)));
    if (failed(check(op, result, std::move(tracked))))
      return failure();
  }
  return success();
}

LogicalResult FunctionCheck::checkReduction(Operation *op,
                                            const Tracked &operand) {
  if (getReduction(op) != ReductionKind::Sum)
    return success();
  for (int axis : getCollectiveAxes(op, devices))
    if (devices.getMesh().getSize(axis) > 1 &&
        !(operand.placement.unreduced & axisBit(axis)))
      return op->emitOpError("adds up over \"")
             << devices.getMesh().getName(axis) << "\" an operand laid out "
             << operand.placement.text << ", which is no partial sum there";
  return success();
}

LogicalResult FunctionCheck::runCore(Operation *op, int64_t run) {
  DeviceTensors results;
  for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op->getOperands())
      operands.push_back(&tensors[operand][device]);
    FailureOr<Tensor> result = evaluateOp(op, operands, devices, device, {run});
    if (failed(result))
      return failure();
    results.push_back(std::move(*result));
  }
  Value result = op->getResult(0);
  tensors[result] = std::move(results);
  auto id = op->getAttrOfType<IntegerAttr>(idAttrName);
  if (!id)
    return follow(op);
  auto layout = op->getAttrOfType<ShardingAttr>(layoutAttrName);
  Value source = layout ? reference.find(id.getInt()) : Value();
  if (!source)
    return success();
  Tracked tracked{source, place(layout, source), getBound(op, source)};
  if (failed(checkOperands(op, tracked)))
    return failure();
  return check(op, result, std::move(tracked));
}

LogicalResult FunctionCheck::follow(Operation *op) {
  if (!isa<MaskOp, ReshapeOp, TransposeOp>(op))
    return success();
  auto known = values.find(op->getOperand(0));
  if (known == values.end())
    return success();
  Tracked tracked = known->second;
  if (!isa<MaskOp>(op))
    for (auto [device, indices] : llvm::enumerate(tracked.placement.indices)) {
      FailureOr<Tensor> moved = evaluateOp(op, &indices, devices, device);
      if (failed(moved))
        return failure();
      indices = std::move(*moved);
    }
  return check(op, op->getResult(0), std::move(tracked));
}

LogicalResult FunctionCheck::checkOperands(Operation *op,
                                           const Tracked &result) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto known = values.find(operand);
    if (known != values.end() &&
        (known->second.placement.unreduced & ~result.placement.unreduced))
      return op->emitOpError("has operand ")
             << index << " laid out " << known->second.placement.text
             << ", of which it makes a result laid out "
             << result.placement.text << ": a partial sum is not reduced";
  }
  auto getShape = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  Operation *source = result.value.getDefiningOp();
  SmallVector<PlacedTensor> operands;
  for (auto [operand, origin] :
       llvm::zip_equal(op->getOperands(), source->getOperands())) {
    auto known = values.find(operand);
    operands.push_back(
        {known == values.end() ? nullptr : &known->second.placement,
         getShape(origin)});
  }
  std::optional<Misplacement> wrong =
      findMisplacement(cast<ShardingRuleOpInterface>(source).getShardingRule(),
                       operands, {&result.placement, getShape(result.value)});
  if (!wrong)
    return success();
  Value operand = op->getOperand(wrong->operand);
  InFlightDiagnostic error =
      op->emitOpError("has operand ")
      << wrong->operand << " in the wrong place: position " << wrong->position
      << " of dimension " << wrong->dim << " on device "
      << devices.toString(wrong->device) << " is element " << wrong->found
      << " of the global tensor, expected element " << wrong->expected;
  error.attachNote(operand.getLoc())
      << "the operand is made here, laid out "
      << values.find(operand)->second.placement.text;
  return error;
}

FailureOr<SmallVector<SmallVector<int64_t>>>
FunctionCheck::findRows(AccumulateOp loop, AccumulateOp source) {
  const Placement &placement = values[loop.getOperands()[0]].placement;
  ArrayRef<int64_t> shape = getTensorShape(source.getOperands()[0]);
  SmallVector<SmallVector<int64_t>> rows;
  // By row of the batch, the run that takes it.
  std::vector<int64_t> takenIn(shape[0], -1);
  auto count = static_cast<int64_t>(loop.getCount());
  for (int64_t run = 0; run < count; ++run) {
    rows.push_back(getGlobalRows(placement, shape, getLocalRows(loop, run)));
    if (static_cast<int64_t>(rows.back().size()) != source.getRows())
      return loop.emitOpError("takes ")
             << rows.back().size() << " rows of the batch in run " << run
             << ", expected " << source.getRows();
    for (int64_t row : rows.back()) {
      if (takenIn[row] >= 0)
        return loop.emitOpError("takes row ")
               << row << " of the batch in run " << takenIn[row]
               << " and again in run " << run;
      takenIn[row] = run;
    }
  }
  return rows;
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
  FailureOr<SmallVector<SmallVector<int64_t>>> rows = findRows(loop, source);
  if (failed(rows) || failed(reference.regroup(source, *rows)))
    return failure();

  SmallVector<DeviceTensors> sums(loop.getNumResults());
  SmallVector<RoundingBound> bounds(loop.getNumResults());
  auto count = static_cast<int64_t>(loop.getCount());
  for (int64_t run = 0; run < count; ++run) {
    ArrayRef<int64_t> rowsOfRun = (*rows)[run];
    if (failed(reference.runBody(source, {run, rowsOfRun})) ||
        failed(feedRows(loop, source, getLocalRows(loop, run), rowsOfRun)) ||
        failed(runBlock(loop.getBody().front(), run)))
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

LogicalResult FunctionCheck::feedRows(AccumulateOp loop, AccumulateOp source,
                                      ArrayRef<int64_t> local,
                                      ArrayRef<int64_t> rows) {
  for (auto [index, operand] : llvm::enumerate(loop.getOperands())) {
    Value slice = loop.getSlices()[index];
    Value sourceSlice = source.getSlices()[index];
    Tracked tracked = values[operand];
    tracked.value = sourceSlice;
    int64_t size = getStrides(reference.get(sourceSlice).shape)[0];
    DeviceTensors &parts = tensors[slice];
    parts.clear();
    for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
      Tensor &indices = tracked.placement.indices[device];
      indices = takeRows(indices, local);
      // A row of the batch becomes a row of the microbatch.
      for (double &element : indices.data) {
        if (element < 0)
          continue;
        auto global = static_cast<int64_t>(element);
        auto row = llvm::lower_bound(rows, global / size);
        if (row == rows.end() || *row != global / size)
          return loop.emitOpError("takes other rows of operand ")
                 << index << " than of operand 0 on device "
                 << devices.toString(device);
        element =
            static_cast<double>((row - rows.begin()) * size + global % size);
      }
    }
    for (const Tensor &whole : tensors[operand])
      parts.push_back(takeRows(whole, local));
    tracked.bound = measure(reference.get(sourceSlice));
    if (failed(check(loop, slice, std::move(tracked))))
      return failure();
  }
  return success();
}

RoundingBound FunctionCheck::getBound(Operation *op, Value source) {
  SmallVector<RoundingBound> bounds;
  for (Value operand : op->getOperands()) {
    auto known = values.find(operand);
    RoundingBound unknown;
    unknown.isKnown = false;
    bounds.push_back(known == values.end() ? unknown : known->second.bound);
  }
  const Tensor *divisor = nullptr;
  if (isa<DivOp>(op))
    if (auto known = values.find(op->getOperand(1)); known != values.end())
      divisor = &reference.get(known->second.value);
  return deriveBound(source.getDefiningOp(), reference.get(source), bounds,
                     divisor);
}

LogicalResult FunctionCheck::check(Operation *op, Value result,
                                   Tracked tracked) {
  const Tensor &expected = reference.get(tracked.value);
  DeviceTensors &shards = tensors[result];
  if (cast<RankedTensorType>(result.getType()).getShape() !=
      ArrayRef<int64_t>(tracked.placement.indices.front().shape))
    return op->emitOpError("is laid out ")
           << tracked.placement.text << ", which is not its shape";
  double tolerance = tracked.bound.getTolerance(expected);
  if (std::optional<Divergence> divergence = findDivergence(
          expected, shards, tracked.placement, tolerance, devices))
    return report(op, tracked, *divergence, tolerance);
  ++summary.values;
  summary.exact += tolerance == 0;
  summary.nonFinite += !llvm::all_of(
      expected.data, [](double element) { return std::isfinite(element); });
  resume(shards, expected, tracked.placement, isa<MaskOp>(op));
  if (tracked.placement.unreduced == 0)
    tracked.bound = measure(expected);
  values[result] = std::move(tracked);
  return success();
}

LogicalResult FunctionCheck::report(Operation *op, const Tracked &tracked,
                                    const Divergence &divergence,
                                    double tolerance) {
  InFlightDiagnostic error =
      op->emitOpError("diverges from the global program @")
      << global.getName() << ": its value, globally " << tracked.value.getType()
      << ", laid out " << tracked.placement.text << ", "
      << describe(divergence, reference.get(tracked.value), tracked.placement,
                  tolerance, devices);
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (auto known = values.find(operand); known != values.end())
      error.attachNote(operand.getLoc())
          << "operand " << index << " is equal, laid out "
          << known->second.placement.text;
  return error;
}

LogicalResult FunctionCheck::checkResults() {
  Operation *terminator = partitioned.getBody().front().getTerminator();
  Operation *source = global.getBody().front().getTerminator();
  for (auto [index, operand] : llvm::enumerate(terminator->getOperands())) {
    auto sharding =
        partitioned.getResultAttrOfType<ShardingAttr>(index, shardingAttrName);
    Value value = source->getOperand(index);
    if (!sharding)
      return partitioned.emitOpError("result ")
             << index << " has no `shardc.sharding`";
    Tracked tracked{value, place(sharding, value), {}};
    auto known = values.find(operand);
    tracked.bound.isKnown = false;
    if (known != values.end())
      tracked.bound = known->second.bound;
    if (failed(check(terminator, operand, std::move(tracked))))
      return failure();
  }
  return success();
}
