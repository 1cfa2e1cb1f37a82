//===- ImportRecomputation.cpp - The policy of recomputation --------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TrainingText.h"

using namespace mlir;
using namespace shardc;

LogicalResult shardc::overrideRecomputation(ModuleOp module, StringRef policy) {
  if (!policy.empty() && !isRecomputePolicy(policy))
    return module.emitError("recompute: expected none, layer, stage or auto, "
                            "got '")
           << policy << "'";
  if (!policy.empty())
    module->setAttr(recomputeAttrName,
                    StringAttr::get(module.getContext(), policy));
  auto attr = module->getAttrOfType<StringAttr>(recomputeAttrName);
  if (!attr)
    return success();
  bool hasPipeline = module->hasAttr(pipelineAttrName);
  if (attr.getValue() == "none")
    module->removeAttr(recomputeAttrName);
  else if ((attr.getValue() == "stage") != hasPipeline)
    return module.emitError("recompute: \"")
           << attr.getValue()
           << (hasPipeline ? "\" is for models without a pipeline; with one, "
                             "expected \"stage\" or \"none\""
                           : "\" needs a pipeline; without one, expected "
                             "\"layer\", \"auto\" or \"none\"");
  return success();
}
