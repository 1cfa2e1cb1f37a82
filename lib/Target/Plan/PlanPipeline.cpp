//===- PlanPipeline.cpp - The pipeline of a plan --------------------------===//

#include "PlanTables.h"

#include "shardc/Analysis/ModulePipeline.h"
#include "shardc/Analysis/ModuleQueries.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/PipelineSchedules/ScheduleText.h"
#include "shardc/Report/MemoryReport.h"
#include "shardc/Report/RankPrograms.h"
#include "shardc/Report/TimeEstimate.h"

using namespace mlir;

namespace shardc {

static_assert(int(fb::TaskKind::WeightGradient) ==
                  int(TaskKind::WeightGradient),
              "the schema and the compiler number kinds of tasks alike");

/// The names of the tasks of `function`, in their order.
static SmallVector<StringRef> getTaskNames(func::FuncOp function) {
  SmallVector<StringRef> names;
  if (auto tasks = function->getAttrOfType<StringAttr>(tasksAttrName))
    tasks.getValue().split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return names;
}

llvm::StringMap<int32_t> getTaskNumbers(func::FuncOp function) {
  llvm::StringMap<int32_t> numbers;
  for (StringRef name : getTaskNames(function))
    numbers.try_emplace(name, numbers.size());
  return numbers;
}

std::vector<flatbuffers::Offset<fb::Task>> writeTasks(PlanContext &plan,
                                                      func::FuncOp function) {
  SmallVector<StringRef> names = getTaskNames(function);
  llvm::StringMap<double> seconds;
  if (!names.empty())
    seconds = getTaskSeconds(function, plan.machine);
  std::vector<flatbuffers::Offset<fb::Task>> tables;
  for (StringRef name : names) {
    PipelineTask task{TaskKind::Forward, 0, 0};
    readPipelineTask(name, task);
    tables.push_back(fb::CreateTask(plan.builder, fb::TaskKind(task.kind),
                                    task.stage, task.microbatch,
                                    seconds.lookup(name)));
  }
  return tables;
}

flatbuffers::Offset<fb::Pipeline> writePipeline(PlanContext &plan,
                                                ModuleOp module) {
  auto pipeline = module->getAttrOfType<PipelineAttr>(pipelineAttrName);
  if (!pipeline)
    return {};
  FailureOr<PipelineSchedule> schedule = getPipelineSchedule(module);
  assert(succeeded(schedule) && "verified when the module was imported");
  std::vector<uint16_t> stages(schedule->rankOfStage.begin(),
                               schedule->rankOfStage.end());
  std::vector<flatbuffers::Offset<fb::PipelineRank>> ranks;
  SmallVector<func::FuncOp> steps = getRankPrograms(module, "train_step");
  for (func::FuncOp step : steps) {
    int64_t arena =
        step->getAttrOfType<IntegerAttr>(arenaBytesAttrName).getInt();
    ranks.push_back(fb::CreatePipelineRank(
        plan.builder, arena,
        writeMemoryReport(plan, MemoryReport(step, arena))));
  }
  StringRef name = pipeline.getSchedule().getValue();
  auto axes = ArrayAttr::get(module.getContext(), {pipeline.getAxis()});
  return fb::CreatePipelineDirect(
      plan.builder, getAxisIndices(plan, axes)[0],
      name.contains('\n') ? "csv" : name.str().c_str(), &stages,
      schedule->microbatches, &ranks, estimateSeconds(steps, plan.machine));
}

} // namespace shardc
