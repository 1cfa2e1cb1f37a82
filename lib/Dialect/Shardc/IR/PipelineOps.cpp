//===- PipelineOps.cpp - Pipelines, and values between stages -------------===//

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/Dialect/Shardc/IR/TensorValues.h"
#include "shardc/Support/MeshSpec.h"

using namespace mlir;
using namespace shardc;

std::optional<PipelineSize> shardc::getPipelineSize(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (!module)
    return std::nullopt;
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  if (!pipeline)
    return std::nullopt;
  // The mesh may stand behind `op` and not be verified yet.
  for (MeshOp mesh : module.getOps<MeshOp>())
    if (int64_t ranks = mesh.getAxisSize(pipeline.getAxis().getValue());
        ranks >= 1 && ranks <= maxMeshDevices)
      return PipelineSize{ranks, pipeline.getChunks()};
  return std::nullopt;
}

IntegerAttr shardc::getStageOfUse(Operation *op) {
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getSourceAttr();
  return op->getAttrOfType<IntegerAttr>(stageAttrName);
}

IntegerAttr shardc::getStageOfResults(Operation *op) {
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getTargetAttr();
  return op->getAttrOfType<IntegerAttr>(stageAttrName);
}

bool shardc::addsOverStages(Operation *op) {
  auto add = dyn_cast<AddOp>(op);
  if (!add || op->hasAttr(stageAttrName) ||
      cast<RankedTensorType>(add.getType()).getRank() != 0 ||
      isa<AccumulateOp, KernelOp>(op->getParentOp()))
    return false;
  return llvm::all_of(op->getOperands(), [](Value operand) {
    Operation *maker = operand.getDefiningOp();
    // The devices of a rank may have added up their parts.
    if (auto reduce = dyn_cast_or_null<AllReduceOp>(maker);
        reduce && !reduce->hasAttr(stageAttrName) && !isOverPipeline(reduce))
      maker = reduce.getOperand(0).getDefiningOp();
    return maker && (getStageOfResults(maker) || addsOverStages(maker));
  });
}

bool shardc::isOverPipeline(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  auto pipeline = op->getParentOfType<ModuleOp>()->getAttrOfType<PipelineAttr>(
      pipelineAttrName);
  return reduce && pipeline &&
         llvm::is_contained(reduce.getAxes(), pipeline.getAxis());
}

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringAttr axis, StringAttr schedule,
                                   int64_t chunks) {
  if (axis.empty() || schedule.empty())
    return emitError() << "#shardc.pipeline needs the name of a mesh axis and "
                          "a schedule";
  if (chunks < 1 || chunks > maxChunks)
    return emitError() << "expected 1 to " << maxChunks << " chunks, got "
                       << chunks;
  return success();
}

LogicalResult TransferOp::verify() {
  auto from = static_cast<int64_t>(getSource());
  auto to = static_cast<int64_t>(getTarget());
  if (from < 0 || to < 0 || from == to)
    return emitOpError("C1: expected two stages, got ")
           << from << " and " << to;
  auto module = (*this)->getParentOfType<ModuleOp>();
  if (module && !module->hasAttr(pipelineAttrName))
    return emitOpError("C2: the module has no `shardc.pipeline`");
  std::optional<PipelineSize> size = getPipelineSize(*this);
  if (size && std::max(from, to) >= size->getNumStages())
    return emitOpError("C2: there is no stage ")
           << std::max(from, to) << ", the pipeline has stages 0 to "
           << size->getNumStages() - 1;
  return success();
}

template <typename Op>
static LogicalResult verifyMessage(Op op) {
  auto peer = static_cast<int64_t>(op.getPeer());
  auto message = static_cast<int64_t>(op.getMessage());
  if (peer < 0 || message < 0)
    return op.emitOpError(
               "C1: expected a rank and a message of at least 0, got ")
           << peer << " and " << message;
  return success();
}

LogicalResult SendOp::verify() { return verifyMessage(*this); }

LogicalResult ReceiveOp::verify() { return verifyMessage(*this); }

LogicalResult RowsOp::verify() {
  auto number = static_cast<int64_t>(getNumber());
  auto count = static_cast<int64_t>(getCount());
  if (number < 0 || number >= count)
    return emitOpError("C1: expected a part of ")
           << count << " parts, got " << number;
  RankedTensorType from = getTensorType(getOperand());
  RankedTensorType to = getTensorType(getResult());
  if (from.getRank() == 0 || from.getRank() != to.getRank() ||
      from.getElementType() != to.getElementType() ||
      from.getShape().drop_front() != to.getShape().drop_front() ||
      from.getDimSize(0) % count != 0 ||
      from.getDimSize(0) / count != to.getDimSize(0))
    return emitOpError("C2: ")
           << to << " is not one of " << count << " equal parts of " << from;
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
