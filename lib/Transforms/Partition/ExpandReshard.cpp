//===- ExpandReshard.cpp - A reshard as collectives -----------------------===//

#include "ExpandReshard.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/DescribeOp.h"
#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/Support/Debug.h"

#define DEBUG_TYPE "shardc-partition"

using namespace mlir;
using namespace shardc;

namespace {

/// Expands one reshard.
class Expander {
public:
  Expander(ReshardOp op, const MeshAxes &mesh)
      : op(op), mesh(mesh), builder(op) {
    if (auto reduction =
            op->getAttrOfType<ReductionKindAttr>(reductionAttrName))
      kind = reduction.getValue();
  }

  Value run(RankedTensorType global, ReshardPlanner &planner) {
    auto madeIn = op->getAttrOfType<PartAttr>(madeInAttrName);
    ReshardPlan plan = planner.plan(
        getLayout(op.getFrom(), mesh), getLayout(op.getTo(), mesh),
        global.getShape(), getElementBytes(global.getElementType()),
        madeIn ? madeIn.getValue() : Part::Forward);
    LLVM_DEBUG(llvm::dbgs() << describeOp(op) << ", " << op.getCauseAttr()
                            << ": " << plan.wireBytes << " bytes sent\n");
    Value value = op.getOperand();
    for (const ReshardStep &step : plan.steps) {
      value = buildStep(
          value,
          global.clone(step.after.getLocalShape(global.getShape(), mesh)),
          step);
      LLVM_DEBUG(llvm::dbgs() << "  to " << toString(step.after, mesh) << ", "
                              << step.wireBytes << " bytes\n");
    }
    return value;
  }

private:
  /// Builds the ops of one step. If the step works on strided shards, reshapes
  /// make the runs of a dimension a dimension of their own, and back.
  Value buildStep(Value value, RankedTensorType type, const ReshardStep &step) {
    auto tag = [&](Value made) {
      if (Attribute part = op->getAttr(partAttrName))
        made.getDefiningOp()->setAttr(partAttrName, part);
      return made;
    };
    ReshardStep inner = step;
    RankedTensorType innerType = splitRuns(type, inner);
    bool hasRuns = innerType != type;
    if (hasRuns) {
      ReshardStep unused = step;
      auto from = cast<RankedTensorType>(value.getType());
      value = tag(builder.create<ReshapeOp>(op.getLoc(),
                                            splitRuns(from, unused), value));
    }
    value = tag(createStep(value, innerType, inner));
    if (Attribute pass = op->getAttr(gatheredForAttrName))
      value.getDefiningOp()->setAttr(gatheredForAttrName, pass);
    if (op.getCause() && step.kind != ReshardStep::Slice)
      value.getDefiningOp()->setAttr(causeAttrName, op.getCauseAttr());
    if (hasRuns)
      value = tag(builder.create<ReshapeOp>(op.getLoc(), type, value));
    return value;
  }

  /// Returns `type` with the runs of the dimensions of `step` as dimensions of
  /// their own, and renumbers the dimensions in `step` accordingly.
  static RankedTensorType splitRuns(RankedTensorType type, ReshardStep &step) {
    SmallVector<int64_t> shape;
    ReshardStep split = step;
    for (auto [dim, size] : llvm::enumerate(type.getShape())) {
      int64_t runs = static_cast<int>(dim) == step.dim         ? step.dimRuns
                     : static_cast<int>(dim) == step.concatDim ? step.concatRuns
                                                               : 1;
      if (runs > 1)
        shape.push_back(runs);
      if (static_cast<int>(dim) == step.dim)
        split.dim = shape.size();
      if (static_cast<int>(dim) == step.concatDim)
        split.concatDim = shape.size();
      shape.push_back(size / runs);
    }
    step = split;
    return type.clone(shape);
  }

  ArrayAttr getAxes(ArrayRef<int> axes) {
    SmallVector<Attribute> names;
    for (StringAttr name : getAxisNames(axes, mesh, builder.getContext()))
      names.push_back(name);
    return builder.getArrayAttr(names);
  }

  /// Builds the collective or slice of a step.
  Value createStep(Value value, RankedTensorType type,
                   const ReshardStep &step) {
    Location loc = op.getLoc();
    StringRef meshName = op.getTo().getMesh().getValue();
    ArrayAttr axes = getAxes(step.axes);
    SmallVector<Type, 1> types = {type};
    SmallVector<int64_t> dims = {step.dim};
    switch (step.kind) {
    case ReshardStep::Slice:
      return builder.create<SliceOp>(loc, type, value, meshName, axes,
                                     step.dim);
    case ReshardStep::AllGather:
      return builder
          .create<AllGatherOp>(loc, types, value, meshName, axes, dims)
          .getResult(0);
    case ReshardStep::ReduceScatter:
      return builder
          .create<ReduceScatterOp>(loc, types, kind, value, meshName, axes,
                                   dims)
          .getResult(0);
    case ReshardStep::AllReduce:
      return builder
          .create<AllReduceOp>(loc, types, kind, value, meshName, axes)
          .getResult(0);
    case ReshardStep::AllToAll:
      return builder.create<AllToAllOp>(loc, type, value, meshName, axes,
                                        step.dim, step.concatDim);
    case ReshardStep::CollectivePermute:
      return builder.create<CollectivePermuteOp>(loc, type, value, meshName,
                                                 axes, getAxes(step.targetAxes),
                                                 DenseI64ArrayAttr());
    }
    return {};
  }

  ReshardOp op;
  const MeshAxes &mesh;
  OpBuilder builder;
  ReductionKind kind = ReductionKind::Sum;
};

} // namespace

Value shardc::expandReshard(ReshardOp reshard, RankedTensorType global,
                            const MeshAxes &mesh, ReshardPlanner &planner) {
  return Expander(reshard, mesh).run(global, planner);
}
