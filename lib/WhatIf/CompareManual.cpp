//===- CompareManual.cpp - shard_map beside automatic partitioning --------===//

#include "shardc/WhatIf/CompareManual.h"

#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

static StringRef getCause(ShardingConstraintOp constraint) {
  auto cause = constraint->getAttrOfType<StringAttr>(manualAttrName);
  return cause ? cause.getValue() : "";
}

/// The constraint of the first collective of a shard_map in `step`; none if it
/// has none.
static ShardingConstraintOp findCollective(func::FuncOp step) {
  for (auto constraint : step.getOps<ShardingConstraintOp>())
    if (StringRef cause = getCause(constraint);
        !cause.empty() && cause != "in" && cause != "out" &&
        cause != "axis_index")
      return constraint;
  return nullptr;
}

OwningOpRef<ModuleOp> shardc::copyWithoutManual(ModuleOp module) {
  func::FuncOp step = getStep(module);
  ShardingConstraintOp collective = step ? findCollective(step) : nullptr;
  if (!collective)
    return nullptr;
  OwningOpRef<ModuleOp> copy = module.clone();
  SmallVector<ShardingConstraintOp> constraints;
  copy->walk([&](ShardingConstraintOp constraint) {
    if (!getCause(constraint).empty())
      constraints.push_back(constraint);
  });
  // The place stays known.
  getStep(*copy)->setLoc(collective.getLoc());
  for (ShardingConstraintOp constraint : constraints) {
    constraint.getResult().replaceAllUsesWith(constraint.getOperand());
    constraint.erase();
  }
  return copy;
}

std::optional<CheapestComparison>
shardc::compareManual(ModuleOp module, ModuleOp automatic,
                      const CompileOptions &options) {
  llvm::Expected<PlanEstimate> own = getEstimate(module, options);
  if (!own) {
    llvm::consumeError(own.takeError());
    return std::nullopt;
  }
  CheapestComparison comparison{getStep(automatic).getLoc(), *own, *own};
  findCheapest(automatic, options, comparison);
  return comparison;
}

void shardc::remarkOnManual(const CheapestComparison &comparison) {
  InFlightDiagnostic remark = mlir::emitRemark(comparison.loc);
  remark << "a step sends " << comparison.own.wireBytes
         << " bytes per device with the collectives of shard_map; ";
  if (!comparison.error.empty()) {
    remark << "what automatic partitioning would send is not known: "
           << comparison.error;
    return;
  }
  remark << "automatic partitioning would send "
         << comparison.cheapest.wireBytes
         << " (jax.jit of the function without shard_map, with "
            "--partition=cheapest)";
}
