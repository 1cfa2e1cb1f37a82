//===- CompareCheapest.cpp - Compares a plan with the cheapest one --------===//

#include "shardc/WhatIf/CompareCheapest.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Report/CommunicationReport.h"

using namespace mlir;
using namespace shardc;

/// The most strategies of all ops, and combinations of them: a search of about
/// a second.
constexpr int64_t maxStrategies = 200'000;
/// The most strategies that all branches of that search look at.
constexpr int64_t maxComparedBranchOptions = 40'000;

void shardc::findCheapest(ModuleOp differentiated, CompileOptions options,
                          CheapestComparison &comparison) {
  options.maxStrategies = maxStrategies;
  options.maxBranchOptions = maxComparedBranchOptions;
  comparison.error = searchOnTrial(differentiated, options);
  if (!comparison.error.empty())
    return;
  func::FuncOp step = getStep(differentiated);
  comparison.search = getPlanCost(step);
  options.partition = "cheapest";
  options.deviceMemory = 0;
  options.ignoreExpectations = true;
  // The estimate is of the step alone.
  for (auto function :
       llvm::make_early_inc_range(differentiated.getOps<func::FuncOp>()))
    if (function != step)
      function.erase();
  llvm::Expected<PlanEstimate> found = estimateOnTrial(differentiated, options);
  if (!found) {
    comparison.error = llvm::toString(found.takeError());
    return;
  }
  // `cheapest` takes the plan that follows the annotations if the found plan is
  // worse.
  if (!found->isWorseThan(comparison.own, options.objective))
    comparison.cheapest = *found;
}

std::optional<CheapestComparison>
shardc::compareCheapest(ModuleOp module, ModuleOp differentiated,
                        const CompileOptions &options) {
  llvm::Expected<PlanEstimate> own = getEstimate(module, options);
  if (!own) {
    llvm::consumeError(own.takeError());
    return std::nullopt;
  }
  func::FuncOp step = getStep(module);
  CheapestComparison comparison{step.getLoc(), *own, *own};
  if (options.partition == "cheapest") {
    if (std::optional<PlanCost> cost = getPlanCost(step))
      if (cost->isSearched())
        comparison.search = cost;
    return comparison;
  }
  findCheapest(differentiated, options, comparison);
  if (!comparison.error.empty())
    return comparison;
  // The minimum of the sum in a search for the least time is no bound of
  // estimates.
  bool isBound = options.objective == "bytes" && comparison.search;
  noteFollowedPlan(step, options.objective, comparison.own, comparison.cheapest,
                   isBound ? comparison.search->atLeast : 0);
  return comparison;
}

void shardc::remarkOn(const CheapestComparison &comparison,
                      const CompileOptions &options) {
  bool isTime = options.objective == "time";
  auto getText = [&](const PlanEstimate &estimate) {
    std::string text =
        "sends " + std::to_string(estimate.wireBytes) + " bytes per device";
    return isTime ? "costs " + getCostText("time", estimate.overlappedSeconds) +
                        " and " + text
                  : text;
  };
  std::string flag = "--partition=cheapest";
  if (!isTime)
    flag += " --objective=bytes";
  std::string text = "a step " + getText(comparison.own);
  if (!comparison.error.empty()) {
    mlir::emitRemark(comparison.loc)
        << text << "; the cost of the cheapest plan (" << flag
        << ") is not known: " << comparison.error;
    return;
  }
  bool isSearched = options.partition == "cheapest";
  if (!isSearched)
    text += "; the cheapest plan " + getText(comparison.cheapest) + " (" +
            flag +
            (options.deviceMemory > 0 ? ", without --device-memory)" : ")");
  if (comparison.search &&
      (isSearched || comparison.search->getGap() > options.gap)) {
    text += getProofText(*comparison.search);
    if (isTime)
      text += " by the sum that the search minimises";
  }
  mlir::emitRemark(comparison.loc) << text;
}
