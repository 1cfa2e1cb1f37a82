//===- CompareCheapest.cpp - Compares a plan with the cheapest one --------===//

#include "shardc/WhatIf/CompareCheapest.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/CommunicationReport.h"

using namespace mlir;
using namespace shardc;

/// The most strategies of all ops, and combinations of them: a search of about
/// a second.
constexpr int64_t maxAssignments = 200'000;
/// The most strategies that all branches of that search look at.
constexpr int64_t maxComparedBranchOptions = 40'000;

/// The attributes of `op` without those that only planners, `partition` and
/// reports read.
static NamedAttrList getProgramAttributes(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  for (StringRef name : {costAttrName, startsAttrName, regatherAttrName,
                         originAttrName, causeAttrName})
    attributes.erase(name);
  return attributes;
}

namespace {

/// Compares programs op by op, in their order. Locations take no part.
class ProgramComparison {
public:
  bool isSame(Operation *lhs, Operation *rhs) {
    if (lhs->getName() != rhs->getName() ||
        lhs->getResultTypes() != rhs->getResultTypes() ||
        lhs->getNumOperands() != rhs->getNumOperands() ||
        lhs->getNumRegions() != rhs->getNumRegions() ||
        (lhs->getAttrDictionary() != rhs->getAttrDictionary() &&
         getProgramAttributes(lhs) != getProgramAttributes(rhs)))
      return false;
    for (auto [left, right] :
         llvm::zip_equal(lhs->getOperands(), rhs->getOperands()))
      if (pairs.lookup(left) != right)
        return false;
    for (auto [left, right] :
         llvm::zip_equal(lhs->getResults(), rhs->getResults()))
      pairs[left] = right;
    for (auto [left, right] :
         llvm::zip_equal(lhs->getRegions(), rhs->getRegions()))
      if (!llvm::hasSingleElement(left) || !llvm::hasSingleElement(right) ||
          !isSame(left.front(), right.front()))
        return false;
    return true;
  }

private:
  bool isSame(Block &lhs, Block &rhs) {
    if (lhs.getArgumentTypes() != rhs.getArgumentTypes() ||
        lhs.getOperations().size() != rhs.getOperations().size())
      return false;
    for (auto [left, right] :
         llvm::zip_equal(lhs.getArguments(), rhs.getArguments()))
      pairs[left] = right;
    for (auto [left, right] : llvm::zip_equal(lhs, rhs))
      if (!isSame(&left, &right))
        return false;
    return true;
  }

  llvm::DenseMap<Value, Value> pairs;
};

} // namespace

/// The estimate of the step of `module`, which is after `propagate` and becomes
/// a trial. `partitioned` is a step after `collectives` with the estimate
/// `known`; where the two are the same, later phases need not run.
static llvm::Expected<PlanEstimate>
estimateFound(ModuleOp module, func::FuncOp partitioned,
              const PlanEstimate &known, const CompileOptions &options) {
  int collectives = getPhaseIndex("collectives");
  std::string error = compileOnTrial(module, getPhaseIndex("propagate") + 1,
                                     collectives, options);
  if (error.empty() && ProgramComparison().isSame(getStep(module), partitioned))
    return known;
  if (error.empty())
    error = compileOnTrial(module, collectives + 1, getPhaseIndex("memory"),
                           options);
  if (!error.empty())
    return llvm::createStringError(error);
  return getEstimate(module, options);
}

std::optional<CheapestComparison>
shardc::compareCheapest(ModuleOp module, func::FuncOp partitioned,
                        ModuleOp differentiated,
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
  CompileOptions search = options;
  search.maxAssignments = maxAssignments;
  search.maxBranchOptions = maxComparedBranchOptions;
  comparison.error = searchOnTrial(differentiated, search);
  if (!comparison.error.empty())
    return comparison;
  comparison.search = getPlanCost(getStep(differentiated));
  search.partition = "cheapest";
  llvm::Expected<PlanEstimate> found =
      estimateFound(differentiated, partitioned, *own, search);
  if (!found) {
    comparison.error = llvm::toString(found.takeError());
    return comparison;
  }
  // `cheapest` takes the plan that follows the annotations if the found plan is
  // worse.
  if (!found->isWorseThan(*own, options.objective))
    comparison.cheapest = *found;
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
