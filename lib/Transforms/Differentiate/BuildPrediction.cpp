//===- BuildPrediction.cpp - The program of predictions -------------------===//

#include "BuildPrediction.h"
#include "Programs.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Prediction.h"

using namespace mlir;
using namespace shardc;

void shardc::buildPrediction(func::FuncOp loss) {
  auto module = loss->getParentOfType<ModuleOp>();
  if (module->hasAttr(noPredictionAttrName))
    return;
  Prediction prediction = findPrediction(
      loss, loss.getBody().front().getTerminator()->getOperand(0));
  if (!prediction.value) {
    module->setAttr(noPredictionAttrName,
                    StringAttr::get(loss.getContext(), prediction.reason));
    return;
  }
  Program program(loss, kPredictName, Part::Forward);
  program.addParameters();
  program.addInputs();
  program.addResult(program.cloneValue(prediction.value), kPredictionName);
  program.finish();
}
