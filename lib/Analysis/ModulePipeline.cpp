//===- ModulePipeline.cpp - The pipeline of a module ----------------------===//

#include "shardc/Analysis/ModulePipeline.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Pipeline.h"
#include "shardc/PipelineSchedules/ScheduleText.h"

using namespace mlir;
using namespace shardc;

FailureOr<PipelineSchedule> shardc::getPipelineSchedule(ModuleOp module) {
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  auto training = module->getAttrOfType<TrainingAttr>(trainingAttrName);
  std::optional<PipelineSize> size = getPipelineSize(module);
  if (!pipeline || !training || !size)
    return module.emitError("expected `shardc.pipeline`, with an axis of the "
                            "mesh, and `shardc.training` on the module");
  llvm::Expected<PipelineSchedule> schedule = getPipelineSchedule(
      pipeline.getSchedule().getValue(), "schedule", size->ranks, size->chunks,
      training.getMicrobatches());
  if (!schedule)
    return module.emitError("`shardc.pipeline`: ")
           << llvm::toString(schedule.takeError());
  return std::move(*schedule);
}

FailureOr<std::vector<int>> shardc::getRanksOfStages(ModuleOp module) {
  if (!module->hasAttr(pipelineAttrName))
    return std::vector<int>();
  FailureOr<PipelineSchedule> schedule = getPipelineSchedule(module);
  if (failed(schedule))
    return failure();
  return std::move(schedule->rankOfStage);
}
