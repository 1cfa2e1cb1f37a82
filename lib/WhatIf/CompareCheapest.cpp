//===- CompareCheapest.cpp - What the cheapest plan would cost ------------===//

#include "shardc/WhatIf/CompareCheapest.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Analysis/OpLayouts.h"
#include "shardc/AutoSharding/SearchProblem.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

/// Ways to shard single ops, and combinations of them, of which a search takes
/// about a second.
constexpr int64_t maxAssignments = 200'000;
/// Ways to shard single ops that all branches of that search look at.
constexpr int64_t maxComparedBranchOptions = 40'000;

/// The train step of a module, or the first function of one without; null if it
/// has none.
static func::FuncOp getStep(ModuleOp module) {
  if (auto step = module.lookupSymbol<func::FuncOp>("train_step"))
    return step;
  auto functions = module.getOps<func::FuncOp>();
  return functions.empty() ? func::FuncOp() : *functions.begin();
}

/// Partitions the module at the least cost; returns why that failed, if it did.
static std::string partitionCheapest(ModuleOp module, CompileOptions options) {
  options.partition = "cheapest";
  options.maxAssignments = maxAssignments;
  options.maxBranchOptions = maxComparedBranchOptions;
  return compileOnTrial(module, getPhaseIndex("propagate"),
                        getPhaseIndex("collectives"), options);
}

/// The seconds of the step of `module`, after `propagate`.
static std::optional<double> getStepSeconds(ModuleOp module,
                                            const CompileOptions &options) {
  FailureOr<ModuleGraph> graph = ModuleGraph::build(module, options.regather);
  if (failed(graph))
    return std::nullopt;
  llvm::Expected<Machine> machine =
      loadMachineFor(graph->mesh, options.machine);
  if (!machine) {
    llvm::consumeError(machine.takeError());
    return std::nullopt;
  }
  setSeconds(*graph, *machine);
  const MeshAxes &mesh = graph->graph.mesh;
  PlanDecisions decisions;
  decisions.layouts = getLayoutsAtRest(graph->graph, {});
  for (Operation *op : graph->operations) {
    Assignment &assignment = decisions.assignments.emplace_back();
    if (!op)
      continue;
    FailureOr<OpLayouts> layouts = OpLayouts::get(op, mesh);
    if (failed(layouts))
      return std::nullopt;
    assignment = std::move(layouts->assignment);
  }
  func::FuncOp step = getStep(module);
  ReshardPlanner planner(mesh, usesAllAxes(module), getPartPrices(step, mesh));
  CollectiveCosts prices(mesh, *machine);
  for (const ModuleGraph::Function &function : graph->functions)
    if (function.op == step)
      return getCostTerms(graph->graph, function.firstOp, function.endOp,
                          decisions, planner, prices)
          .getTotal();
  return std::nullopt;
}

std::optional<CheapestPrice>
shardc::priceCheapest(ModuleOp module, ModuleOp propagated,
                      ModuleOp differentiated, const CompileOptions &options) {
  func::FuncOp step = getStep(module);
  if (!step)
    return std::nullopt;
  CheapestPrice price{step.getLoc(), {}};
  price.wireBytes = getCommunicationReport(step).wireBytesPerDevice;
  if (std::optional<PlanCost> cost = getPlanCost(step)) {
    price.cost = *cost;
    price.cheapestWireBytes = price.wireBytes;
    return price;
  }
  price.cost.objective = options.objective;
  price.cost.cost = price.wireBytes;
  if (options.objective == "time") {
    std::optional<double> seconds = getStepSeconds(propagated, options);
    if (!seconds)
      return std::nullopt;
    price.cost.cost = *seconds;
  }
  price.error = partitionCheapest(differentiated, options);
  if (!price.error.empty())
    return price;
  func::FuncOp other = getStep(differentiated);
  std::optional<PlanCost> cheapest = getPlanCost(other);
  price.cheapestWireBytes = getCommunicationReport(other).wireBytesPerDevice;
  price.cost.atLeast = cheapest->atLeast;
  price.cost.cheapest = cheapest->cost;
  Builder builder(module.getContext());
  step->setAttr(costAttrName,
                CostAttr::get(module.getContext(),
                              builder.getStringAttr(options.objective),
                              builder.getF64FloatAttr(price.cost.cost),
                              builder.getF64FloatAttr(cheapest->atLeast),
                              builder.getF64FloatAttr(cheapest->cost),
                              IntegerAttr()));
  return price;
}

void shardc::remarkOn(const CheapestPrice &price,
                      const CompileOptions &options) {
  const PlanCost &cost = price.cost;
  bool isTime = cost.objective == "time";
  auto getText = [&](double value, int64_t bytes) {
    std::string text = "sends " + std::to_string(bytes) + " bytes per device";
    return isTime ? "costs " + getCostText("time", value) + " and " + text
                  : text;
  };
  std::string flag = "--partition=cheapest";
  if (!isTime)
    flag += " --objective=bytes";
  std::string text = "a step " + getText(cost.cost, price.wireBytes);
  if (!price.error.empty()) {
    mlir::emitRemark(price.loc) << text << "; what the cheapest plan (" << flag
                                << ") costs is not known: " << price.error;
    return;
  }
  if (cost.cheapest)
    text += "; the cheapest plan that uses every axis " +
            getText(*cost.cheapest, price.cheapestWireBytes) + " (" + flag +
            (options.deviceMemory > 0 ? ", without --device-memory)" : ")");
  if (!cost.isProved())
    text += "; no such plan has less than " +
            getCostText(cost.objective, cost.atLeast);
  else if (!cost.cheapest)
    text += ", the least of " + getComparedText(cost);
  mlir::emitRemark(price.loc) << text;
}
