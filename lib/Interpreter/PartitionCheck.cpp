//===- PartitionCheck.cpp - Checks a partition against its program --------===//

#include "shardc/Interpreter/PartitionCheck.h"

#include "FunctionCheck.h"
#include "RanksCheck.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shardc;

void shardc::numberValues(ModuleOp global) {
  int64_t next = 0;
  Builder builder(global.getContext());
  for (auto function : global.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (op != function && op->getNumResults() > 0)
        op->setAttr(idAttrName, builder.getI64IntegerAttr(next++));
    });
}

FailureOr<PartitionSummary> shardc::checkPartition(ModuleOp global,
                                                   ModuleOp partitioned) {
  FailureOr<MeshOp> mesh = getMesh(partitioned);
  if (failed(mesh))
    return failure();
  Devices devices{getMeshAxes(*mesh)};
  PartitionSummary summary, unused;
  summary.devices = devices.getNumDevices();
  for (auto function : partitioned.getOps<func::FuncOp>()) {
    auto source = global.lookupSymbol<func::FuncOp>(function.getName());
    if (!source)
      return function.emitOpError("is not in the global program");
    if (failed(FunctionCheck(source, function, devices, summary)
                   .run(InputKind::Integers)) ||
        failed(FunctionCheck(source, function, devices, unused)
                   .run(InputKind::Fractions)))
      return failure();
  }
  return summary;
}

FailureOr<PartitionSummary> shardc::checkRanks(ModuleOp global,
                                               ModuleOp programs) {
  FailureOr<MeshOp> mesh = getMesh(programs);
  if (failed(mesh))
    return failure();
  Devices devices{getMeshAxes(*mesh)};
  PartitionSummary summary, unused;
  summary.devices = devices.getNumDevices();
  llvm::MapVector<StringRef, SmallVector<func::FuncOp>> functions;
  for (auto function : programs.getOps<func::FuncOp>()) {
    auto rank = function->getAttrOfType<IntegerAttr>(rankAttrName);
    SmallVector<func::FuncOp> &ranks = functions[getProgramName(function)];
    if (!rank || rank.getInt() != static_cast<int64_t>(ranks.size()))
      return function.emitOpError("has `shardc.pipeline_rank` ")
             << rank << ", expected " << ranks.size();
    ranks.push_back(function);
  }
  for (auto &[program, ranks] : functions) {
    summary.ranks = static_cast<int64_t>(ranks.size());
    auto source = global.lookupSymbol<func::FuncOp>(program);
    // The copies are of parameters, which the train step has.
    if (program == kRoundParametersName)
      source = *global.getOps<func::FuncOp>().begin();
    if (!source)
      return ranks.front().emitOpError("is not in the global program");
    if (failed(RanksCheck(source, program, ranks, devices, summary)
                   .run(InputKind::Integers)) ||
        failed(RanksCheck(source, program, ranks, devices, unused)
                   .run(InputKind::Fractions)))
      return failure();
  }
  return summary;
}
