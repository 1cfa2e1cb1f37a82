//===- Differentiate.cpp - Loss to train step and evaluation --------------===//

#include "Evaluation.h"
#include "TrainStep.h"

#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Dialect/Shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "shardc/Dialect/Shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

struct DifferentiatePass
    : shardc::impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto training = module->getAttrOfType<TrainingAttr>("shardc.training");
    if (!training) {
      module.emitError("has no `shardc.training`, which says what to "
                       "differentiate");
      return signalPassFailure();
    }
    auto loss = module.lookupSymbol<func::FuncOp>(training.getLoss());
    if (!loss || loss.isExternal()) {
      module.emitError("`shardc.training` names loss function ")
          << training.getLoss() << ", but the module has none of that name";
      return signalPassFailure();
    }
    if (failed(buildTrainStep(loss, training)))
      return signalPassFailure();
    buildEvaluation(loss);
    loss.erase();
  }
};

} // namespace
