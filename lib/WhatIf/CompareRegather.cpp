//===- CompareRegather.cpp - The memory of the other choice ---------------===//

#include "shardc/WhatIf/CompareRegather.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/WhatIf/TrialCompilation.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace shardc;

static RegatherAttr getRegather(func::FuncOp function) {
  return function->getAttrOfType<RegatherAttr>(regatherAttrName);
}

void shardc::compareRegather(ModuleOp module, ModuleOp propagated,
                             const CompileOptions &options) {
  if (llvm::none_of(module.getOps<func::FuncOp>(), getRegather))
    return;
  CompileOptions other = options;
  other.regather = !options.regather;
  if (!compileOnTrial(propagated, getPhaseIndex("partition"),
                      getPhaseIndex("memory"), other)
           .empty())
    return;
  int64_t peak =
      propagated->getAttrOfType<IntegerAttr>(arenaBytesAttrName).getInt();
  for (auto function : module.getOps<func::FuncOp>())
    if (RegatherAttr cost = getRegather(function))
      function->setAttr(regatherAttrName,
                        RegatherAttr::get(module.getContext(), cost.getTaken(),
                                          cost.getWireBytes(),
                                          cost.getHeldBytes(), peak));
}
