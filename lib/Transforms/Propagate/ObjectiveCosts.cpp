//===- ObjectiveCosts.cpp - The costs of an objective ---------------------===//

#include "ObjectiveCosts.h"

#include "shardc/Analysis/CollectiveBytes.h"
#include "shardc/Analysis/Nesting.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

/// Gives each transfer between stages the cost of the bytes that a device sends
/// in all runs.
static void setTransferCosts(ModuleGraph &module, double costPerByte) {
  for (auto [op, node] : llvm::zip_equal(module.operations, module.graph.ops)) {
    auto transfer = dyn_cast_or_null<TransferOp>(op);
    if (!transfer)
      continue;
    auto type = cast<RankedTensorType>(transfer.getResult().getType());
    int64_t bytes =
        getNumRuns(transfer) * getElementBytes(type.getElementType());
    node.seconds.perElement = {0, costPerByte * static_cast<double>(bytes)};
  }
}

FailureOr<CollectiveCosts> shardc::getObjectiveCosts(ModuleGraph &module,
                                                     StringRef objective,
                                                     StringRef machine) {
  auto root = module.mesh->getParentOfType<ModuleOp>();
  if (objective != "time") {
    setTransferCosts(module, 1);
    return CollectiveCosts();
  }
  llvm::Expected<Machine> loaded = loadMachineFor(module.mesh, machine);
  if (!loaded) {
    root.emitError("machine: ") << llvm::toString(loaded.takeError());
    return failure();
  }
  setSeconds(module, *loaded);
  if (auto pipeline = root->getAttrOfType<PipelineAttr>(pipelineAttrName))
    setTransferCosts(
        module,
        1 / loaded->getLink(pipeline.getAxis().getValue()).bytesPerSecond);
  const MeshAxes &mesh = module.graph.mesh;
  CollectiveCosts collectiveCosts(mesh, *loaded);
  Builder builder(root.getContext());
  NamedAttrList rates;
  for (int axis = 0; axis < mesh.getNumAxes(); ++axis)
    rates.set(
        mesh.getName(axis),
        builder.getF64FloatAttr(collectiveCosts.getSecondsPerByte()[axis]));
  root->setAttr(secondsPerByteAttrName, rates.getDictionary(root.getContext()));
  return collectiveCosts;
}
