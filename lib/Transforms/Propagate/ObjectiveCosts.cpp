//===- ObjectiveCosts.cpp - The costs of an objective ---------------------===//

#include "ObjectiveCosts.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;
using namespace shardc;

FailureOr<CollectiveCosts> shardc::getObjectiveCosts(ModuleGraph &module,
                                                     StringRef objective,
                                                     StringRef machine) {
  if (objective != "time")
    return CollectiveCosts();
  auto root = module.mesh->getParentOfType<ModuleOp>();
  llvm::Expected<Machine> loaded = loadMachineFor(module.mesh, machine);
  if (!loaded) {
    root.emitError("machine: ") << llvm::toString(loaded.takeError());
    return failure();
  }
  setSeconds(module, *loaded);
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
