//===- PartitionCheck.cpp - Checks a partition against its program --------===//

#include "shardc/Interpreter/PartitionCheck.h"

#include "FunctionCheck.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

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
