//===- Differentiate.cpp - Loss to the programs of a plan -----------------===//

#include "BuildPrediction.h"
#include "Evaluation.h"
#include "shardc/Transforms/Differentiate/TrainStep.h"

#include "shardc/Analysis/ModulePhase.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Transforms/Passes.h"

namespace shardc {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "shardc/Transforms/Passes.h.inc"
} // namespace shardc

using namespace mlir;
using namespace shardc;

namespace {

/// Annotates label arguments with the number of classes of the cross-entropies
/// that read them; the runtime checks labels against it. Later phases cannot
/// count classes, because logits may be sharded then.
void noteLabelClasses(func::FuncOp loss) {
  loss.walk([&](SoftmaxCrossEntropyOp op) {
    Value labels = op.getLabels();
    while (auto constraint = labels.getDefiningOp<ShardingConstraintOp>())
      labels = constraint.getOperand();
    auto argument = dyn_cast<BlockArgument>(labels);
    if (!argument)
      return;
    int64_t classes =
        cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1);
    // A label that two cross-entropies read must be valid for both.
    if (auto noted = loss.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                        labelClassesAttrName))
      classes = std::min(classes, noted.getInt());
    loss.setArgAttr(argument.getArgNumber(), labelClassesAttrName,
                    Builder(op.getContext()).getI64IntegerAttr(classes));
  });
}

struct DifferentiatePass
    : shardc::impl::DifferentiatePassBase<DifferentiatePass> {
  void runOnOperation() override {
    if (failed(checkInputPhase(*this, getOperation(), ModulePhase::Import,
                               ModulePhase::Import)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
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
    noteLabelClasses(loss);
    if (failed(buildTrainStep(loss, training)))
      return signalPassFailure();
    buildEvaluation(loss);
    buildPrediction(loss);
    loss.erase();
  }
};

} // namespace
