//===- TrialPlan.cpp - The memory of a plan -------------------------------===//

#include "TrialPlan.h"

#include "WriteDecisions.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

using namespace mlir;
using namespace shardc;

void shardc::writeCost(func::FuncOp function, const CheapestPlan &plan,
                       const CollectiveCosts &collectiveCosts,
                       const MeshAxes &mesh, int64_t within) {
  MLIRContext *context = function.getContext();
  Builder builder(context);
  StringRef objective = collectiveCosts.hasLatencies() ? "time" : "bytes";
  double cost = plan.terms.getCost();
  function->setAttr(
      costAttrName,
      CostAttr::get(
          context, builder.getStringAttr(objective),
          builder.getF64FloatAttr(cost),
          builder.getF64FloatAttr(std::min(plan.lowerBound, cost)), FloatAttr(),
          within ? builder.getI64IntegerAttr(within) : IntegerAttr()));
  if (!collectiveCosts.hasLatencies())
    return;
  SmallVector<Attribute> starts;
  for (const MergedCollective &start : plan.terms.collectives)
    starts.push_back(StartAttr::get(
        context, start.part, start.kind.first,
        getAxisNames(mesh.getList(start.kind.second), mesh, context)));
  function->setAttr(startsAttrName, builder.getArrayAttr(starts));
}

/// Writes the plan to `copy` and measures it. Drops all diagnostics except
/// errors.
static llvm::Expected<std::vector<int64_t>>
tryOn(ModuleOp copy, const PlanDecisions &decisions,
      ArrayRef<CheapestPlan> plans, const CollectiveCosts &collectiveCosts,
      bool regathers, const PeakLimit &limit) {
  std::string error = "the plan cannot be written down";
  {
    ScopedDiagnosticHandler silence(
        copy.getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            error = diagnostic.str();
          return success();
        });
    FailureOr<ModuleGraph> graph = ModuleGraph::build(copy, regathers);
    if (failed(graph))
      return llvm::createStringError(error);
    Decisions written{decisions, {}};
    written.origins.resize(graph->graph.ops.size());
    if (failed(writeDecisions(*graph, written)))
      return llvm::createStringError(error);
    copy->setAttr(partitionAttrName,
                  StringAttr::get(copy.getContext(), "cheapest"));
    for (auto [function, plan] : llvm::zip_equal(graph->functions, plans))
      writeCost(function.op, plan, collectiveCosts, graph->graph.mesh);
  }
  return limit.getPeaks(copy, regathers);
}

llvm::Expected<std::vector<int64_t>>
shardc::tryPlan(const ModuleGraph &module, const PlanDecisions &decisions,
                ArrayRef<CheapestPlan> plans,
                const CollectiveCosts &collectiveCosts, bool regathers,
                const PeakLimit &limit) {
  MeshOp mesh = module.mesh;
  auto root = mesh->getParentOfType<ModuleOp>();
  OwningOpRef<ModuleOp> copy = root.clone();
  return tryOn(*copy, decisions, plans, collectiveCosts, regathers, limit);
}
