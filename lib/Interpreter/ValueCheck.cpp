//===- ValueCheck.cpp - Values of ops against their global values ---------===//

#include "ValueCheck.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Interpreter/Alignment.h"
#include "shardc/Interpreter/EvaluateOp.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace shardc;

SmallVector<int64_t> shardc::getLocalRows(int64_t rows, int64_t run) {
  return llvm::to_vector(llvm::seq(run * rows, (run + 1) * rows));
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

LogicalResult ValueCheck::feed(func::FuncOp function, BlockArgument argument,
                               Value source) {
  unsigned index = argument.getArgNumber();
  auto sharding =
      function.getArgAttrOfType<ShardingAttr>(index, shardingAttrName);
  if (!sharding)
    return mlir::emitError(argument.getLoc(), "argument ")
           << index << " has no `shardc.sharding`";
  Tracked tracked{source, getPlacementOf(sharding, source),
                  measure(reference.get(source))};
  tensors[argument] = scatter(reference.get(source), tracked.placement);
  values[argument] = std::move(tracked);
  return success();
}

Placement ValueCheck::getPlacementOf(ShardingAttr sharding, Value source) {
  Layout layout = getLayout(sharding, devices.getMesh());
  if (auto reduce = source.getDefiningOp<ReduceOp>())
    layout.reduction = reduce.getKind();
  return getPlacement(
      layout, cast<RankedTensorType>(source.getType()).getShape(), devices);
}

LogicalResult ValueCheck::runCollective(Operation *op) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    Value result = op->getResult(index);
    tensors[result] = evaluateCollective(op, index, tensors[operand], devices);
    if (op->hasAttr(idAttrName)) {
      // It is what an op of the global program became.
      if (failed(checkNumbered(op)))
        return failure();
      continue;
    }
    auto known = values.find(operand);
    if (known == values.end())
      continue;
    if (failed(checkReduction(op, known->second)))
      return failure();
    Tracked tracked{known->second.value,
                    movePlacement(op, index, known->second.placement, devices),
                    known->second.bound, known->second.run};
    tracked.bound.roundings += static_cast<double>(
        devices.getMesh().getNumShards(getCollectiveAxes(op, devices)));
    if (failed(check(op, result, std::move(tracked))))
      return failure();
  }
  return success();
}

LogicalResult ValueCheck::checkReduction(Operation *op,
                                         const Tracked &operand) {
  if (getReduction(op) != ReductionKind::Sum)
    return success();
  for (int axis : getCollectiveAxes(op, devices))
    if (devices.getMesh().getSize(axis) > 1 &&
        !(operand.placement.unreduced & axisBit(axis)))
      return emitError(op) << "adds up over \""
                           << devices.getMesh().getName(axis)
                           << "\" an operand laid out "
                           << operand.placement.text
                           << ", which is no partial sum there";
  return success();
}

LogicalResult ValueCheck::runCore(Operation *op) {
  DeviceTensors results;
  for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op->getOperands())
      operands.push_back(&tensors[operand][device]);
    FailureOr<Tensor> result =
        evaluateOp(op, operands, devices, device, {currentRun});
    if (failed(result))
      return failure();
    results.push_back(std::move(*result));
  }
  Value result = op->getResult(0);
  tensors[result] = std::move(results);
  return op->hasAttr(idAttrName) ? checkNumbered(op) : follow(op);
}

LogicalResult ValueCheck::checkNumbered(Operation *op) {
  Value result = op->getResult(0);
  auto id = op->getAttrOfType<IntegerAttr>(idAttrName);
  auto layout = op->getAttrOfType<ShardingAttr>(layoutAttrName);
  Value source = layout ? reference.find(id.getInt()) : Value();
  if (!source)
    return success();
  Tracked tracked{source, getPlacementOf(layout, source), {}};
  tracked.run = getRunOf(source.getDefiningOp());
  tracked.bound = getBound(op, source, getExpected(tracked));
  if (failed(checkOperands(op, tracked)))
    return failure();
  return check(op, result, std::move(tracked));
}

LogicalResult ValueCheck::follow(Operation *op) {
  // Rounding keeps values here.
  bool isRounding =
      isa<ConvertOp>(op) &&
      llvm::all_of(ArrayRef<Value>{op->getOperand(0), op->getResult(0)},
                   [](Value value) {
                     return isa<FloatType>(getElementTypeOrSelf(value));
                   });
  if (!isRounding && !isa<MaskOp, ReshapeOp, TransposeOp>(op))
    return success();
  auto known = values.find(op->getOperand(0));
  if (known == values.end())
    return success();
  Tracked tracked = known->second;
  if (isa<ReshapeOp, TransposeOp>(op))
    for (auto [device, indices] : llvm::enumerate(tracked.placement.indices)) {
      FailureOr<Tensor> moved = evaluateOp(op, &indices, devices, device);
      if (failed(moved))
        return failure();
      indices = std::move(*moved);
    }
  return check(op, op->getResult(0), std::move(tracked));
}

LogicalResult ValueCheck::checkOperands(Operation *op, const Tracked &result) {
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto known = values.find(operand);
    if (known != values.end() &&
        (known->second.placement.unreduced & ~result.placement.unreduced))
      return emitError(op) << "has operand " << index << " laid out "
                           << known->second.placement.text
                           << ", of which it makes a result laid out "
                           << result.placement.text
                           << ": a partial sum is not reduced";
  }
  // Rows of a microbatch have other numbers than in the batch.
  if (isa<ScatterRowsOp>(op))
    return success();
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
      emitError(op) << "has operand " << wrong->operand
                    << " in the wrong place: position " << wrong->position
                    << " of dimension " << wrong->dim << " on device "
                    << devices.toString(wrong->device) << " is element "
                    << wrong->found
                    << " of the global tensor, expected element "
                    << wrong->expected;
  error.attachNote(operand.getLoc())
      << "the operand is made here, laid out "
      << values.find(operand)->second.placement.text;
  return error;
}

FailureOr<SmallVector<SmallVector<int64_t>>>
ValueCheck::findRows(Operation *op, Value whole, AccumulateOp source,
                     unsigned index, int64_t localRows) {
  const Placement &placement = values[whole].placement;
  ArrayRef<int64_t> shape = getTensorShape(source.getOperands()[index]);
  SmallVector<SmallVector<int64_t>> rows;
  // By row of the batch, the run that takes it.
  std::vector<int64_t> takenIn(shape[0], -1);
  auto count = static_cast<int64_t>(source.getCount());
  for (int64_t run = 0; run < count; ++run) {
    rows.push_back(
        getGlobalRows(placement, shape, getLocalRows(localRows, run)));
    if (static_cast<int64_t>(rows.back().size()) != source.getRows())
      return emitError(op) << "takes " << rows.back().size()
                           << " rows of the batch in run " << run
                           << ", expected " << source.getRows();
    for (int64_t row : rows.back()) {
      if (takenIn[row] >= 0)
        return emitError(op) << "takes row " << row << " of the batch in run "
                             << takenIn[row] << " and again in run " << run;
      takenIn[row] = run;
    }
  }
  return rows;
}

LogicalResult ValueCheck::takeRows(Operation *op, Value whole, Value result,
                                   AccumulateOp source, unsigned index,
                                   ArrayRef<int64_t> local,
                                   ArrayRef<int64_t> rows, int64_t run) {
  Tracked tracked = values[whole];
  tracked.value = source.getSlices()[index];
  tracked.run = run;
  const Tensor &expected = getExpected(tracked);
  int64_t size = getStrides(expected.shape)[0];
  DeviceTensors parts;
  for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
    Tensor &indices = tracked.placement.indices[device];
    indices = shardc::takeRows(indices, local);
    // A row of the batch becomes a row of the microbatch.
    for (double &element : indices.data) {
      if (element < 0)
        continue;
      auto globalIndex = static_cast<int64_t>(element);
      auto row = llvm::lower_bound(rows, globalIndex / size);
      if (row == rows.end() || *row != globalIndex / size)
        return emitError(op)
               << "takes other rows of operand " << index
               << " than of operand 0 on device " << devices.toString(device);
      element =
          static_cast<double>((row - rows.begin()) * size + globalIndex % size);
    }
    parts.push_back(shardc::takeRows(tensors[whole][device], local));
  }
  tracked.bound = measure(expected);
  tensors[result] = std::move(parts);
  return check(op, result, std::move(tracked));
}

RoundingBound ValueCheck::getBound(Operation *op, Value source,
                                   const Tensor &expected) {
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
      divisor = &getExpected(known->second);
  return deriveBound(source.getDefiningOp(), expected, bounds, divisor);
}

LogicalResult ValueCheck::check(Operation *op, Value result, Tracked tracked) {
  const Tensor &expected = getExpected(tracked);
  DeviceTensors &shards = tensors[result];
  if (cast<RankedTensorType>(result.getType()).getShape() !=
      ArrayRef<int64_t>(tracked.placement.indices.front().shape))
    return emitError(op) << "is laid out " << tracked.placement.text
                         << ", which is not its shape";
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

LogicalResult ValueCheck::report(Operation *op, const Tracked &tracked,
                                 const Divergence &divergence,
                                 double tolerance) {
  InFlightDiagnostic error =
      emitError(op) << "diverges from the global program @" << global.getName()
                    << ": its value, globally " << tracked.value.getType()
                    << ", laid out " << tracked.placement.text << ", "
                    << describe(divergence, getExpected(tracked),
                                tracked.placement, tolerance, devices);
  for (auto [index, operand] : llvm::enumerate(op->getOperands()))
    if (auto known = values.find(operand); known != values.end())
      error.attachNote(operand.getLoc())
          << "operand " << index << " is equal, laid out "
          << known->second.placement.text;
  return error;
}

LogicalResult ValueCheck::checkResult(Operation *op, Value operand,
                                      Value source, ShardingAttr sharding) {
  Tracked tracked{source, getPlacementOf(sharding, source), {}};
  auto known = values.find(operand);
  tracked.bound.isKnown = false;
  if (known != values.end())
    tracked.bound = known->second.bound;
  return check(op, operand, std::move(tracked));
}
