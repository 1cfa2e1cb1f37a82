//===- CommunicationReport.cpp - The collectives of a program -------------===//

#include "shardc/Report/CommunicationReport.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace shardc;

std::optional<CollectiveEntry> shardc::getCollectiveEntry(Operation *op) {
  std::optional<CollectiveCost> cost = getCollectiveCost(op);
  if (!cost)
    return std::nullopt;
  int64_t runs = getNumRuns(op);
  CollectiveEntry entry{cost->kind,
                        {},
                        cost->groupSize,
                        cost->bytes,
                        runs,
                        runs * cost->wireBytes,
                        Part::Forward,
                        getSourceText(op->getLoc()),
                        ""};
  for (StringAttr axis : getMovedAxes(op))
    entry.axes.push_back(axis.str());
  if (auto part = op->getAttrOfType<PartAttr>(partAttrName))
    entry.part = part.getValue();
  if (auto cause = op->getAttrOfType<StringAttr>(causeAttrName))
    entry.cause = cause.str();
  if (auto transfer = dyn_cast<TransferOp>(op)) {
    entry.stage = transfer.getSource();
    entry.cause = "from stage " + std::to_string(transfer.getSource()) +
                  " to stage " + std::to_string(transfer.getTarget());
  } else if (auto stage = op->getAttrOfType<IntegerAttr>(stageAttrName)) {
    entry.stage = stage.getInt();
  }
  return entry;
}

int64_t shardc::getMatmulFlops(Operation *op) {
  auto elements = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getNumElements();
  };
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    auto lhs = cast<RankedTensorType>(dot.getLhs().getType());
    int64_t flops = 2 * elements(dot.getResult());
    for (int64_t dim : dot.getLhsContracting())
      flops *= lhs.getDimSize(dim);
    return flops;
  }
  if (auto gemm = dyn_cast<GemmOp>(op)) {
    auto lhs = cast<RankedTensorType>(gemm.getLhs().getType());
    int64_t last = lhs.getRank() - 1;
    int64_t contracted =
        lhs.getDimSize(gemm.getTransposeLhs() ? last - 1 : last);
    return 2 * elements(gemm.getResult()) * contracted;
  }
  return 0;
}

CommunicationReport shardc::getCommunicationReport(func::FuncOp function) {
  CommunicationReport report;
  report.regather = getRegatherCost(function);
  report.cost = getPlanCost(function);
  std::vector<int> rankOfStage;
  if (FailureOr<std::vector<int>> found =
          getRanksOfStages(function->getParentOfType<ModuleOp>());
      succeeded(found))
    rankOfStage = std::move(*found);
  int64_t ranks = rankOfStage.empty() ? 1 : *llvm::max_element(rankOfStage) + 1;
  std::vector<int64_t> wireBytes(ranks, 0), flops(ranks, 0);
  // Without a stage an op is on every rank.
  auto add = [&](std::vector<int64_t> &sums, std::optional<int64_t> stage,
                 int64_t summand) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      if (!stage || ranks == 1 || rankOfStage[*stage] == rank)
        sums[rank] += summand;
  };
  function.walk([&](Operation *op) {
    std::optional<int64_t> stage;
    if (auto attr = op->getAttrOfType<IntegerAttr>(stageAttrName))
      stage = attr.getInt();
    add(flops, stage, getNumRuns(op) * getMatmulFlops(op));
    if (std::optional<CollectiveEntry> entry = getCollectiveEntry(op)) {
      add(wireBytes, entry->stage, entry->wireBytes);
      report.collectives.push_back(std::move(*entry));
    }
  });
  report.wireBytesPerDevice = *llvm::max_element(wireBytes);
  report.matmulFlopsPerDevice = *llvm::max_element(flops);
  if (ranks > 1)
    report.wireBytesByRank = std::move(wireBytes);
  return report;
}

std::optional<PlanCost> shardc::getPlanCost(func::FuncOp function) {
  auto attr = function->getAttrOfType<CostAttr>(costAttrName);
  if (!attr)
    return std::nullopt;
  PlanCost cost{attr.getObjective().str(), attr.getCost().getValueAsDouble(),
                attr.getAtLeast().getValueAsDouble(), std::nullopt};
  if (attr.getCheapest())
    cost.cheapest = attr.getCheapest().getValueAsDouble();
  if (attr.getWithin())
    cost.within = attr.getWithin().getInt();
  return cost;
}

/// Rounded up, except for the last bits of a sum.
static int64_t getWholeBytes(double bytes) {
  return static_cast<int64_t>(std::ceil(bytes * (1 - 1e-12)));
}

bool PlanCost::isProved() const {
  double found = cheapest.value_or(cost);
  return objective == "bytes" ? getWholeBytes(atLeast) >= getWholeBytes(found)
                              : atLeast >= found * (1 - 2e-6);
}

double PlanCost::getGap() const {
  double found = cheapest.value_or(cost);
  return isProved() ? 0 : std::clamp((found - atLeast) / found, 0.0, 1.0);
}

std::string shardc::getCostText(StringRef objective, double cost) {
  if (objective == "time")
    return llvm::formatv("{0:f2} us", cost * 1e6);
  return llvm::formatv("{0} bytes on the wire", getWholeBytes(cost));
}

std::string shardc::getProofText(const PlanCost &cost) {
  std::string compared = "the least of all plans that use every axis";
  if (cost.within)
    compared += llvm::formatv(" and need at most {0} bytes", *cost.within);
  if (cost.isProved())
    return ", " + compared;
  std::string text;
  llvm::raw_string_ostream(text)
      << "; " << compared << " is at most "
      << llvm::format("%.2g", cost.getGap() * 100) << " % lower";
  return text;
}

std::string shardc::toString(const PlanCost &cost) {
  std::string text = "by objective " + cost.objective + ": ";
  // The sum that a search for the least time minimises is not an estimate.
  if (cost.isSearched() && cost.objective == "time")
    return text + "found by a search" + getProofText(cost) +
           " by the sum that it minimises";
  text += getCostText(cost.objective, cost.cost);
  if (cost.isSearched())
    return text + getProofText(cost);
  text +=
      "; the cheapest plan: " + getCostText(cost.objective, *cost.cheapest) +
      " (--partition=cheapest)";
  return cost.atLeast > 0 && !cost.isProved() ? text + getProofText(cost)
                                              : text;
}

llvm::json::Object shardc::toJson(const PlanCost &cost) {
  llvm::json::Object object{
      {"objective", cost.objective},
      {"plan", cost.isSearched() ? "searched" : "follow"}};
  bool isEstimate = !cost.isSearched() || cost.objective != "time";
  if (isEstimate)
    object["cost"] = cost.cost;
  if (isEstimate && cost.atLeast > 0)
    object["at_least"] = cost.atLeast;
  if (cost.isSearched())
    object["gap"] = cost.getGap();
  else
    object["cheapest"] = *cost.cheapest;
  if (cost.within)
    object["within"] = *cost.within;
  return object;
}

std::optional<RegatherCost> shardc::getRegatherCost(func::FuncOp function) {
  auto attr = function->getAttrOfType<RegatherAttr>(regatherAttrName);
  if (!attr)
    return std::nullopt;
  RegatherCost cost{attr.getTaken(), attr.getWireBytes(), attr.getHeldBytes(),
                    std::nullopt, attr.getOtherPeakBytes()};
  auto module = function->getParentOfType<ModuleOp>();
  if (auto peak = module->getAttrOfType<IntegerAttr>(arenaBytesAttrName))
    cost.peakBytes = peak.getInt();
  return cost;
}

std::string shardc::toString(const RegatherCost &cost) {
  auto pick = [&](auto taken, auto held) {
    return cost.isTaken ? taken : held;
  };
  std::string text = llvm::formatv(
      "{0}: {1}{2} bytes on the wire, {3}{4} bytes held between the passes",
      pick("holding weights until the backward pass (without --regather)",
           "gathering weights again for the backward pass (--regather)"),
      pick('-', '+'), cost.wireBytes, pick('+', '-'), cost.heldBytes);
  if (cost.peakBytes && cost.otherPeakBytes)
    text += llvm::formatv(", a peak of {0} instead of {1} bytes",
                          *cost.otherPeakBytes, *cost.peakBytes);
  return text;
}

llvm::json::Object shardc::toJson(const RegatherCost &cost) {
  llvm::json::Object object{{"taken", cost.isTaken},
                            {"wire_bytes", cost.wireBytes},
                            {"held_bytes", cost.heldBytes}};
  if (cost.otherPeakBytes)
    object["other_peak_bytes"] = *cost.otherPeakBytes;
  return object;
}

llvm::json::Object shardc::toJson(const CommunicationReport &report) {
  llvm::json::Array collectives;
  for (const CollectiveEntry &entry : report.collectives) {
    llvm::json::Object object{{"kind", toString(entry.kind)},
                              {"axes", llvm::json::Array(entry.axes)},
                              {"group_size", entry.groupSize},
                              {"bytes", entry.bytes},
                              {"runs", entry.runs},
                              {"wire_bytes", entry.wireBytes},
                              {"part", stringifyPart(entry.part)},
                              {"source", entry.source},
                              {"cause", entry.cause}};
    if (entry.stage)
      object["stage"] = *entry.stage;
    collectives.push_back(std::move(object));
  }
  llvm::json::Object object{
      {"collectives", std::move(collectives)},
      {"wire_bytes_per_device", report.wireBytesPerDevice},
      {"matmul_flops_per_device", report.matmulFlopsPerDevice}};
  if (!report.wireBytesByRank.empty())
    object["wire_bytes_by_rank"] = llvm::json::Array(report.wireBytesByRank);
  if (report.cost)
    object["cost"] = toJson(*report.cost);
  if (report.regather)
    object["regather"] = toJson(*report.regather);
  return object;
}

void shardc::print(const CommunicationReport &report, llvm::raw_ostream &os) {
  if (report.collectives.empty()) {
    os << "no communication\n";
  } else {
    os << llvm::formatv("{0,-18} {1,-16} {2,6} {3,14} {4,14}  {5,-8}  {6}\n",
                        "collective", "axes", "group", "bytes", "wire bytes",
                        "part", "source: cause");
    for (const CollectiveEntry &entry : report.collectives) {
      os << llvm::formatv("{0,-18} {1,-16} {2,6} {3,14} {4,14}  {5,-8}  {6}: "
                          "{7}",
                          toString(entry.kind), llvm::join(entry.axes, ","),
                          entry.groupSize, entry.bytes, entry.wireBytes,
                          stringifyPart(entry.part), entry.source, entry.cause);
      if (entry.runs > 1)
        os << " (in each of " << entry.runs << " microbatches)";
      os << '\n';
    }
  }
  for (auto [rank, bytes] : llvm::enumerate(report.wireBytesByRank))
    os << llvm::formatv("{0,-25}{1}\n",
                        llvm::formatv("on pipeline rank {0}:", rank).str(),
                        bytes);
  if (!report.wireBytesByRank.empty())
    os << "on all ranks together:   "
       << std::accumulate(report.wireBytesByRank.begin(),
                          report.wireBytesByRank.end(), int64_t(0))
       << '\n';
  os << "wire bytes per device:   " << report.wireBytesPerDevice << '\n'
     << "matmul FLOPs per device: " << report.matmulFlopsPerDevice << '\n';
  if (report.cost)
    os << toString(*report.cost) << '\n';
  if (report.regather)
    os << toString(*report.regather) << '\n';
}
