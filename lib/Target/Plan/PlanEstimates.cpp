//===- PlanEstimates.cpp - Estimates of a program's time and cost ---------===//

#include "CommandList.h"
#include "PlanTables.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Report/CommunicationReport.h"
#include "shardc/Report/MemoryReport.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;

namespace shardc {

static flatbuffers::Offset<fb::OpTime> writeOpTime(PlanContext &plan,
                                                   const OpSpan &span) {
  Operation *op = span.op;
  if (auto start = dyn_cast<CollectiveStartOp>(op))
    op = start.getCollective();
  std::string name = op->getNumResults() ? getComputedName(op->getResult(0))
                                         : op->getName().stripDialect().str();
  auto nameOffset = plan.builder.CreateSharedString(name);
  auto source = plan.builder.CreateSharedString(getSourceString(op->getLoc()));
  return fb::CreateOpTime(plan.builder, nameOffset, source, getPart(span.op),
                          span.communicates, span.startSeconds, span.seconds,
                          span.gemmFlops, span.memoryBytes);
}

/// The type in which the first GEMM of `op` multiplies.
static ComputeType getGemmType(Operation *op) {
  ComputeType type = ComputeType::F32;
  op->walk([&](Operation *inner) {
    if (!isa<DotGeneralOp, GemmOp>(inner))
      return WalkResult::advance();
    Type element = getElementTypeOrSelf(inner->getOperand(0).getType());
    if (element.isF64())
      type = ComputeType::F64;
    else if (element.isBF16())
      type = ComputeType::BF16;
    return WalkResult::interrupt();
  });
  return type;
}

flatbuffers::Offset<fb::TimeEstimate> writeTimeEstimate(PlanContext &plan,
                                                        func::FuncOp function) {
  TimeEstimate time = estimateTime(function, plan.machine);
  std::vector<flatbuffers::Offset<fb::OpTime>> ops;
  double gemmFlopsPerSecond = 0;
  if (getProgramName(function) == "train_step")
    for (const OpSpan &span : time.spans) {
      ops.push_back(writeOpTime(plan, span));
      if (span.gemmFlops > 0 && gemmFlopsPerSecond == 0)
        gemmFlopsPerSecond =
            plan.machine.getMatmulFlopsPerSecond(getGemmType(span.op));
    }
  return fb::CreateTimeEstimateDirect(
      plan.builder, plan.machine.name.c_str(), time.computeSeconds,
      time.memorySeconds, time.communicationSeconds, time.overlappedSeconds,
      ops.empty() ? nullptr : &ops, gemmFlopsPerSecond,
      plan.machine.memoryBytesPerSecond, time.inputSeconds);
}

flatbuffers::Offset<fb::Regather> writeRegather(PlanContext &plan,
                                                func::FuncOp function) {
  std::optional<RegatherCost> cost = getRegatherCost(function);
  if (!cost)
    return {};
  return fb::CreateRegather(plan.builder, cost->isTaken, cost->wireBytes,
                            cost->heldBytes, cost->otherPeakBytes.value_or(0));
}

flatbuffers::Offset<fb::PlanCost> writePlanCost(PlanContext &plan,
                                                func::FuncOp function) {
  std::optional<PlanCost> cost = getPlanCost(function);
  if (!cost)
    return {};
  return fb::CreatePlanCostDirect(
      plan.builder, cost->objective.c_str(), cost->cost, cost->atLeast,
      cost->cheapest.value_or(0), cost->within.value_or(0));
}

flatbuffers::Offset<fb::Recompute> writeRecompute(PlanContext &plan,
                                                  func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto policy = module->getAttrOfType<StringAttr>(recomputeAttrName);
  if (!policy || getProgramName(function) != "train_step")
    return {};
  MemoryTraffic traffic(function);
  uint64_t flops = 0;
  double seconds = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!op->hasAttr(recomputedAttrName))
      return WalkResult::advance();
    op->walk([&](Operation *inner) {
      flops += getNumRuns(op) * getMatmulFlops(inner);
    });
    seconds += getNumRuns(op) * getSerialSeconds(plan.machine, op, traffic);
    return WalkResult::skip();
  });
  auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>(bytesWithoutAttrName);
  int64_t index = rank ? rank.getInt() : 0;
  return fb::CreateRecomputeDirect(
      plan.builder, policy.str().c_str(), flops, seconds,
      bytes && index < bytes.size() ? bytes[index] : 0);
}

} // namespace shardc
