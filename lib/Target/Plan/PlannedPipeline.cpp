//===- PlannedPipeline.cpp - The pipeline of a plan over time -------------===//

#include "PlannedPipeline.h"

#include "CommunicationLines.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace shardc;
namespace fb = shardc::rt::fb;

double PlannedPipeline::getIdleShare(size_t rank) const {
  return simulation.makespan > 0
             ? 1 - simulation.busy[rank] / simulation.makespan
             : 0;
}

static Error getError(const Twine &message) {
  return createStringError("the plan's pipeline: " + message);
}

/// The train step of each rank.
static Expected<std::vector<const fb::Program *>>
findSteps(const fb::Plan &plan) {
  std::vector<const fb::Program *> steps(plan.pipeline()->ranks()->size());
  for (const fb::Program *program : *plan.programs())
    if (program->name()->str() == "train_step" && program->rank() >= 0 &&
        static_cast<size_t>(program->rank()) < steps.size())
      steps[program->rank()] = program;
  for (auto [rank, step] : enumerate(steps))
    if (!step)
      return getError("rank " + Twine(rank) + " has no train step");
  return steps;
}

static Expected<PipelineSchedule>
readSchedule(const fb::Pipeline &pipeline,
             ArrayRef<const fb::Program *> steps) {
  PipelineSchedule schedule;
  schedule.rankOfStage.assign(pipeline.stages()->begin(),
                              pipeline.stages()->end());
  if (Error error = checkPipelineSize(1, schedule.getNumStages(),
                                      pipeline.microbatches()))
    return error;
  schedule.microbatches = static_cast<int>(pipeline.microbatches());
  for (const fb::Program *step : steps) {
    std::vector<PipelineTask> &tasks = schedule.ranks.emplace_back();
    if (!step->tasks())
      continue;
    for (const fb::Task *task : *step->tasks()) {
      if (task->kind() < fb::TaskKind::MIN ||
          task->kind() > fb::TaskKind::MAX ||
          task->microbatch() >= pipeline.microbatches())
        return getError("a task is of no kind or microbatch");
      tasks.push_back({TaskKind(task->kind()), task->stage(),
                       static_cast<int>(task->microbatch())});
    }
  }
  if (Error error = checkPipelineSchedule(schedule))
    return getError(toString(std::move(error)));
  return schedule;
}

Expected<PlannedPipeline> shardc::getPlannedPipeline(const fb::Plan &plan) {
  Expected<std::vector<const fb::Program *>> steps = findSteps(plan);
  if (!steps)
    return steps.takeError();
  Expected<PipelineSchedule> schedule = readSchedule(*plan.pipeline(), *steps);
  if (!schedule)
    return schedule.takeError();
  PlannedPipeline result;
  result.schedule = std::move(*schedule);
  result.steps = std::move(*steps);
  result.liveMicrobatches = countLiveMicrobatches(result.schedule);

  std::vector<StageTimes> sends(result.schedule.getNumStages());
  std::vector<std::vector<double>> seconds;
  for (const fb::Program *step : result.steps) {
    std::vector<double> &ofRank = seconds.emplace_back();
    if (step->tasks())
      for (const fb::Task *task : *step->tasks())
        ofRank.push_back(task->seconds());
    for (const CommunicationLine &line : getCommunicationLines(*step).lines) {
      if (line.first->kind() != fb::CollectiveKind::Send || !line.task)
        continue;
      StageTimes &stage = sends[line.task->stage()];
      (line.task->kind() == fb::TaskKind::Forward ? stage.sendForward
                                                  : stage.sendBackward) +=
          line.seconds / static_cast<double>(line.runs);
    }
  }
  result.simulation = simulateSchedule(result.schedule, sends, seconds);
  return result;
}
