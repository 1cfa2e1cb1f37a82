//===- PartitionCheck.cpp - A partition against its global program --------===//

#include "shardc/Interpreter/PartitionCheck.h"

#include "shardc/Analysis/ModuleGraph.h"
#include "shardc/Interpreter/EvaluateOp.h"
#include "shardc/Interpreter/GlobalRun.h"
#include "shardc/Interpreter/Placement.h"
#include "shardc/Interpreter/RoundingBound.h"

#include "llvm/Support/Format.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace shardc;

namespace {

/// What a local value is in the global program.
struct Tracked {
  /// Of the global program.
  Value value;
  Placement placement;
  RoundingBound bound;
};

class FunctionCheck {
public:
  FunctionCheck(func::FuncOp global, func::FuncOp partitioned,
                const Devices &devices, PartitionSummary &summary)
      : global(global), partitioned(partitioned), devices(devices),
        summary(summary) {}

  LogicalResult run(uint64_t seed) {
    FailureOr<GlobalRun> evaluated = GlobalRun::run(global, seed);
    if (failed(evaluated) || failed(checkSignature()))
      return failure();
    reference = std::move(*evaluated);
    for (BlockArgument argument : partitioned.getArguments())
      if (failed(feed(argument)))
        return failure();
    for (Operation &op : partitioned.getBody().front().without_terminator()) {
      ++summary.ops;
      if (failed(isCollective(&op) ? runCollective(&op) : runCore(&op)))
        return failure();
    }
    return checkResults();
  }

private:
  LogicalResult checkSignature() {
    if (global.getNumArguments() != partitioned.getNumArguments() ||
        global.getNumResults() != partitioned.getNumResults())
      return partitioned.emitOpError("has another number of arguments or "
                                     "results than in the global program");
    return success();
  }

  LogicalResult feed(BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    auto sharding =
        partitioned.getArgAttrOfType<ShardingAttr>(index, "shardc.sharding");
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

  Placement place(ShardingAttr sharding, Value source) {
    Layout layout = getLayout(sharding, devices.getMesh());
    if (auto reduce = source.getDefiningOp<ReduceOp>())
      layout.reduction = reduce.getKind();
    return getPlacement(
        layout, cast<RankedTensorType>(source.getType()).getShape(), devices);
  }

  LogicalResult runCollective(Operation *op) {
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      Value result = op->getResult(index);
      tensors[result] =
          evaluateCollective(op, index, tensors[operand], devices);
      auto known = values.find(operand);
      if (known == values.end())
        continue;
      Tracked tracked{
          known->second.value,
          movePlacement(op, index, known->second.placement, devices),
          known->second.bound};
      tracked.bound.roundings += static_cast<double>(
          devices.getMesh().getNumShards(getCollectiveAxes(op, devices)));
      if (failed(check(op, result, std::move(tracked))))
        return failure();
    }
    return success();
  }

  LogicalResult runCore(Operation *op) {
    DeviceTensors results;
    for (int64_t device = 0; device < devices.getNumDevices(); ++device) {
      SmallVector<const Tensor *> operands;
      for (Value operand : op->getOperands())
        operands.push_back(&tensors[operand][device]);
      FailureOr<Tensor> result = evaluateOp(op, operands, devices, device);
      if (failed(result))
        return failure();
      results.push_back(std::move(*result));
    }
    Value result = op->getResult(0);
    tensors[result] = std::move(results);
    if (isa<MaskOp>(op)) {
      auto known = values.find(op->getOperand(0));
      return known == values.end() ? success()
                                   : check(op, result, Tracked(known->second));
    }
    auto id = op->getAttrOfType<IntegerAttr>("shardc.id");
    auto layout = op->getAttrOfType<ShardingAttr>("shardc.layout");
    Value source = id && layout ? reference.find(id.getInt()) : Value();
    if (!source)
      return success();
    return check(op, result,
                 {source, place(layout, source), getBound(op, source)});
  }

  RoundingBound getBound(Operation *op, Value source) {
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

  /// Compares `result`, which `op` made, and lets the devices go on with the
  /// bits of the global value.
  LogicalResult check(Operation *op, Value result, Tracked tracked) {
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
    resume(shards, expected, tracked, isa<MaskOp>(op));
    values[result] = std::move(tracked);
    return success();
  }

  void resume(DeviceTensors &shards, const Tensor &expected, Tracked &tracked,
              bool keepsPadding) {
    bool isReduced = tracked.placement.unreduced == 0;
    for (auto [shard, indices] :
         llvm::zip_equal(shards, tracked.placement.indices))
      for (auto [element, index] : llvm::zip_equal(shard.data, indices.data)) {
        if (index < 0 && !keepsPadding)
          element = std::numeric_limits<double>::quiet_NaN();
        if (index >= 0 && isReduced)
          element = expected.data[static_cast<size_t>(index)];
      }
    if (isReduced)
      tracked.bound = measure(expected);
  }

  LogicalResult report(Operation *op, const Tracked &tracked,
                       const Divergence &divergence, double tolerance) {
    auto type = cast<RankedTensorType>(tracked.value.getType());
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "diverges from the global program @" << global.getName()
       << ": its value, globally " << type << ", laid out "
       << tracked.placement.text << ", ";
    SmallVector<int64_t, 3> place = getPlace(divergence.index, type.getShape());
    os << (divergence.device < 0 ? "is held by no device at ["
                                 : "has at index [");
    llvm::interleaveComma(place, os);
    os << "]";
    if (divergence.device >= 0)
      os << (tracked.placement.unreduced ? " summed to " : " ")
         << llvm::format("%.17g", divergence.actual) << " on device "
         << devices.toString(divergence.device);
    os << ", expected " << llvm::format("%.17g", divergence.expected);
    if (tolerance > 0)
      os << " within " << llvm::format("%.2g", tolerance);
    if (divergence.device >= 0 && std::isnan(divergence.actual) &&
        !std::isnan(divergence.expected))
      os << "; padding is NaN, so padding counts here";
    InFlightDiagnostic error = op->emitOpError(text);
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      if (auto known = values.find(operand); known != values.end())
        error.attachNote(operand.getLoc())
            << "operand " << index << " is equal, laid out "
            << known->second.placement.text;
    return error;
  }

  LogicalResult checkResults() {
    Operation *terminator = partitioned.getBody().front().getTerminator();
    Operation *source = global.getBody().front().getTerminator();
    for (auto [index, operand] : llvm::enumerate(terminator->getOperands())) {
      auto sharding = partitioned.getResultAttrOfType<ShardingAttr>(
          index, "shardc.sharding");
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

  func::FuncOp global, partitioned;
  const Devices &devices;
  PartitionSummary &summary;
  GlobalRun reference;
  llvm::DenseMap<Value, DeviceTensors> tensors;
  llvm::DenseMap<Value, Tracked> values;
};

} // namespace

void shardc::numberValues(ModuleOp global) {
  int64_t next = 0;
  Builder builder(global.getContext());
  for (auto function : global.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (op != function && op->getNumResults() > 0)
        op->setAttr("shardc.id", builder.getI64IntegerAttr(next++));
    });
}

FailureOr<PartitionSummary>
shardc::checkPartition(ModuleOp global, ModuleOp partitioned, uint64_t seed) {
  FailureOr<MeshOp> mesh = getMesh(partitioned);
  if (failed(mesh))
    return failure();
  Devices devices{MeshAxes(*mesh)};
  PartitionSummary summary;
  summary.devices = devices.getNumDevices();
  for (auto function : partitioned.getOps<func::FuncOp>()) {
    auto source = global.lookupSymbol<func::FuncOp>(function.getName());
    if (!source)
      return function.emitOpError("is not in the global program");
    if (failed(FunctionCheck(source, function, devices, summary).run(seed)))
      return failure();
  }
  return summary;
}
