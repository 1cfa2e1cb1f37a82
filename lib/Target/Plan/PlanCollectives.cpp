//===- PlanCollectives.cpp - Collectives and their reports ----------------===//

#include "PlanTables.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Sources.h"
#include "shardc/Report/TimeEstimate.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shardc {

flatbuffers::Offset<fb::CollectiveStart>
writeCollective(PlanContext &plan, Operation *op, ArrayRef<uint32_t> operands,
                ArrayRef<uint32_t> results, uint32_t report) {
  ArrayRef<int64_t> dims;
  auto reduction = fb::Reduction::Sum;
  int64_t splitDim = -1, concatDim = 0;
  std::vector<uint16_t> targetAxes;
  std::vector<uint32_t> sources;
  llvm::TypeSwitch<Operation *>(op)
      .Case<AllReduceOp>(
          [&](AllReduceOp op) { reduction = fb::Reduction(op.getKind()); })
      .Case<AllGatherOp>([&](AllGatherOp op) { dims = op.getDims(); })
      .Case<ReduceScatterOp>([&](ReduceScatterOp op) {
        dims = op.getDims();
        reduction = fb::Reduction(op.getKind());
      })
      .Case<AllToAllOp>([&](AllToAllOp op) {
        splitDim = op.getSplitDim();
        concatDim = op.getConcatDim();
      })
      .Case<CollectivePermuteOp>([&](CollectivePermuteOp op) {
        targetAxes = getAxisIndices(plan, op.getTargetAxes());
        if (op.getSources())
          sources.assign(op.getSources()->begin(), op.getSources()->end());
      });
  std::vector<flatbuffers::Offset<fb::CollectiveItem>> items;
  for (auto [position, in, out] : llvm::enumerate(operands, results)) {
    int64_t dim = position < dims.size() ? dims[position] : concatDim;
    items.push_back(
        fb::CreateCollectiveItem(plan.builder, in, out, dim, splitDim));
  }
  auto axes = getAxisIndices(plan, op->getAttrOfType<ArrayAttr>("axes"));
  return fb::CreateCollectiveStartDirect(
      plan.builder, fb::CollectiveKind(getCollectiveCost(op)->kind), reduction,
      &axes, &targetAxes, &items, report, &sources);
}

flatbuffers::Offset<fb::CollectiveReport>
writeCollectiveReport(PlanContext &plan, Operation *op) {
  CollectiveCost cost = *getCollectiveCost(op);
  std::vector<flatbuffers::Offset<flatbuffers::String>> axes;
  for (StringAttr axis : getMovedAxes(op))
    axes.push_back(plan.builder.CreateString(axis.getValue().str()));
  std::string cause;
  Attribute attr = op->getAttr(causeAttrName);
  if (auto text = dyn_cast_or_null<StringAttr>(attr))
    cause = text.getValue().str();
  else if (auto list = dyn_cast_or_null<ArrayAttr>(attr))
    for (Attribute part : list)
      if (auto text = dyn_cast<StringAttr>(part))
        cause += (cause.empty() ? "" : "; ") + text.getValue().str();
  std::string source = getSourceString(op->getLoc());
  int64_t runs = getNumRuns(op);
  return fb::CreateCollectiveReportDirect(
      plan.builder, fb::CollectiveKind(cost.kind), &axes, cost.groupSize,
      cost.bytes, runs * cost.wireBytes, getPart(op), source.c_str(),
      cause.c_str(), runs * getCollectiveSeconds(plan.machine, op), runs);
}

} // namespace shardc
