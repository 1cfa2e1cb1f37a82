//===- PipelineOps.cpp - Pipelines, and values between stages -------------===//

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"

using namespace mlir;
using namespace shardc;

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringAttr axis, StringAttr schedule,
                                   int64_t chunks) {
  if (axis.empty() || schedule.empty())
    return emitError() << "#shardc.pipeline needs the name of a mesh axis and "
                          "a schedule";
  if (chunks < 1)
    return emitError() << "expected at least one chunk, got " << chunks;
  return success();
}

LogicalResult TransferOp::verify() {
  auto from = static_cast<int64_t>(getSource());
  auto to = static_cast<int64_t>(getTarget());
  if (from < 0 || to < 0 || from == to)
    return emitOpError("C1: expected two stages, got ")
           << from << " and " << to;
  return success();
}

/// The identity, which is linear.
ShardingRule TransferOp::getShardingRule() {
  RankedTensorType type = getTensorType(getResult());
  ShardingRule rule;
  ShardingRule::TensorFactors dims;
  for (int64_t size : type.getShape()) {
    dims.push_back({static_cast<int>(rule.factors.size())});
    rule.factors.push_back({size});
  }
  rule.operands = {dims};
  rule.results = {dims};
  rule.partial = PartialRule::Additive;
  return rule;
}
