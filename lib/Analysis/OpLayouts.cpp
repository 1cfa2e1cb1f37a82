//===- OpLayouts.cpp - What an op wants and what it makes -----------------===//

#include "shardc/Analysis/OpLayouts.h"

using namespace mlir;
using namespace shardc;

/// Reads the assignment of `op` into axis numbers; nothing if it does not fit.
static LogicalResult readAssignment(Operation *op, const MeshAxes &mesh,
                                    OpLayouts &layouts, AxisSet &unreduced) {
  auto assignment = op->getAttrOfType<AssignmentAttr>("shardc.assignment");
  if (!assignment)
    return op->emitOpError("has no `shardc.assignment`; a planner such as "
                           "shardc-propagate must run first");
  if (assignment.getFactors().size() != layouts.rule.factors.size())
    return op->emitOpError("`shardc.assignment` has ")
           << assignment.getFactors().size()
           << " factors, but the op's sharding rule has "
           << layouts.rule.factors.size();
  AxisSet seen = 0;
  auto add = [&](StringAttr name, function_ref<void(int)> use) {
    int axis = mesh.find(name.getValue());
    if (axis < 0 || (seen & axisBit(axis)))
      return op->emitOpError("`shardc.assignment` uses axis ")
             << name << (axis < 0 ? ", which the mesh lacks" : " twice");
    seen |= axisBit(axis);
    if (mesh.getSize(axis) > 1)
      use(axis);
    return InFlightDiagnostic();
  };
  for (DimShardingAttr factor : assignment.getFactors()) {
    AxisList &axes = layouts.factors.emplace_back();
    for (StringAttr name : factor.getAxes())
      if (auto error = add(name, [&](int axis) { axes.push_back(axis); });
          failed(error))
        return failure();
  }
  for (StringAttr name : assignment.getUnreduced())
    if (auto error = add(name, [&](int axis) { unreduced |= axisBit(axis); });
        failed(error))
      return failure();
  for (auto [factor, axes] :
       llvm::zip_equal(layouts.rule.factors, layouts.factors)) {
    int64_t shards = mesh.getNumShards(axes);
    if (shards == 1)
      continue;
    if (factor.kind == FactorKind::Whole ||
        (factor.mustDivide && factor.size % shards != 0))
      return op->emitOpError("`shardc.assignment` shards a factor of size ")
             << factor.size << " over " << shards
             << " devices, which its sharding rule forbids";
  }
  return success();
}

FailureOr<OpLayouts>
OpLayouts::get(Operation *op, const MeshAxes &mesh,
               llvm::function_ref<Layout(Value)> getProduced) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface) {
    op->emitOpError("has no sharding rule");
    return failure();
  }
  OpLayouts layouts;
  layouts.rule = interface.getShardingRule();
  AxisSet unreduced = 0;
  if (failed(readAssignment(op, mesh, layouts, unreduced)))
    return failure();

  const ShardingRule &rule = layouts.rule;
  for (const ShardingRule::TensorFactors &dims : rule.operands)
    layouts.operands.push_back(getTensorLayout(rule, dims, layouts.factors));
  switch (rule.partial) {
  case PartialRule::Never:
    if (unreduced) {
      op->emitOpError("is assigned partial sums, but is not linear");
      return failure();
    }
    break;
  case PartialRule::Additive:
    for (Layout &layout : layouts.operands)
      layout.unreduced = unreduced;
    break;
  case PartialRule::Multilinear: {
    AxisSet first = unreduced & getProduced(op->getOperand(0)).unreduced;
    layouts.operands[0].unreduced = first;
    layouts.operands[1].unreduced = unreduced & ~first;
    break;
  }
  case PartialRule::FirstOperand:
    layouts.operands[0].unreduced = unreduced;
    break;
  }

  AxisSet sums = getAxesOf(rule, layouts.factors, FactorKind::Sum);
  AxisSet maxima = getAxesOf(rule, layouts.factors, FactorKind::Max);
  for (const ShardingRule::TensorFactors &dims : rule.results) {
    Layout layout = getTensorLayout(rule, dims, layouts.factors);
    layout.unreduced = unreduced | sums | maxima;
    if (maxima)
      layout.reduction = ReductionKind::Max;
    layouts.results.push_back(layout);
  }
  return layouts;
}
