//===- ImportTraining.cpp - Another optimizer, rate, schedule -------------===//

#include "ImportSteps.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/TrainingText.h"

#include "mlir/IR/Builders.h"

#include <cmath>

using namespace mlir;
using namespace shardc;

/// `optimizer` with another learning rate.
static OptimizerAttr withRate(OptimizerAttr optimizer, double rate) {
  NamedAttrList numbers(optimizer.getHyperparameters());
  numbers.set("learning_rate",
              Builder(optimizer.getContext()).getF64FloatAttr(rate));
  return OptimizerAttr::get(optimizer.getContext(), optimizer.getKind(),
                            numbers.getDictionary(optimizer.getContext()));
}

LogicalResult shardc::overrideTraining(ModuleOp module,
                                       const TrainingOverrides &overrides) {
  MLIRContext *context = module.getContext();
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  OptimizerAttr optimizer = training.getOptimizer();
  ScheduleAttr schedule = training.getSchedule();
  FloatAttr clipNorm = training.getClipNorm();
  std::string error;
  if (!overrides.optimizer.empty() &&
      !(optimizer = readOptimizer(context, overrides.optimizer,
                                  optimizer.get("learning_rate"), error)))
    return module.emitError("optimizer: ") << error;
  if (overrides.learningRate < 0 || !std::isfinite(overrides.learningRate))
    return module.emitError("learning-rate: expected a number above 0");
  if (overrides.learningRate > 0)
    optimizer = withRate(optimizer, overrides.learningRate);
  if (!overrides.schedule.empty() &&
      !(schedule = readSchedule(context, overrides.schedule, error)))
    return module.emitError("schedule: ") << error;
  if (overrides.clipNorm < 0 || std::isnan(overrides.clipNorm))
    return module.emitError("clip-norm: expected a number above 0");
  if (std::isinf(overrides.clipNorm))
    clipNorm = {};
  else if (overrides.clipNorm > 0)
    clipNorm = Builder(context).getF64FloatAttr(overrides.clipNorm);
  module->setAttr(trainingAttrName,
                  TrainingAttr::get(context, training.getLoss(), optimizer,
                                    clipNorm, schedule,
                                    training.getMicrobatches()));
  return success();
}
