//===- PlannedPipeline.cpp - The pipeline of a plan over time -------------===//

#include "PlannedPipeline.h"

#include "shardc/PipelineSchedules/SimulateCommands.h"

#include "llvm/ADT/STLExtras.h"

#include <map>

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

/// The commands of a rank. On GPUs they are on streams, one after the other on
/// each of them.
static Expected<std::vector<PipelineCommand>>
readCommands(const fb::Plan &plan, const fb::Program &step) {
  using Kind = PipelineCommand::Kind;
  std::vector<PipelineCommand> commands;
  if (!step.commands())
    return commands;
  bool hasStreams = plan.gpu_target() != nullptr;
  // By stream its last command.
  std::map<fb::Stream, int> lasts;
  for (const fb::Command *from : *step.commands()) {
    PipelineCommand &command = commands.emplace_back();
    auto number = static_cast<int>(commands.size()) - 1;
    command.task = from->task();
    if (const fb::Send *send = from->operation_as_Send()) {
      command.kind = Kind::Send;
      command.message = send->message();
      if (step.collectives() && send->report() < step.collectives()->size())
        command.seconds = step.collectives()->Get(send->report())->seconds();
    } else if (const fb::Receive *receive = from->operation_as_Receive()) {
      command.kind = Kind::Receive;
      command.message = receive->message();
    } else if (const auto *start = from->operation_as_CollectiveStart()) {
      command.kind = is_contained(*start->axes(), plan.pipeline()->axis())
                         ? Kind::JointCollective
                         : Kind::Collective;
    } else if (const auto *wait = from->operation_as_CollectiveWait()) {
      command.kind = Kind::Wait;
      command.after.push_back(static_cast<int>(wait->start()));
    }
    if (hasStreams) {
      command.isInList = false;
      auto [last, isFirst] = lasts.try_emplace(from->stream(), number);
      if (!isFirst && command.kind == Kind::Work)
        command.after.push_back(last->second);
      last->second = number;
      if (from->after())
        for (uint32_t other : *from->after())
          command.after.push_back(static_cast<int>(other));
    }
    for (int other : command.after)
      if (other < 0 || other >= number)
        return getError("command " + Twine(number) + " waits for " +
                        Twine(other));
    size_t numTasks = step.tasks() ? step.tasks()->size() : 0;
    if (command.task >= static_cast<int>(numTasks))
      return getError("command " + Twine(number) + " has no task");
  }
  return commands;
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

  std::vector<std::vector<PipelineCommand>> commands;
  std::vector<std::vector<double>> seconds;
  for (const fb::Program *step : result.steps) {
    Expected<std::vector<PipelineCommand>> own = readCommands(plan, *step);
    if (!own)
      return own.takeError();
    commands.push_back(std::move(*own));
    std::vector<double> &ofRank = seconds.emplace_back();
    if (step->tasks())
      for (const fb::Task *task : *step->tasks())
        ofRank.push_back(task->seconds());
  }
  std::optional<PipelineSimulation> simulation =
      simulateCommands(commands, seconds);
  if (!simulation)
    return getError("its ranks cannot run: a message has one end alone, or "
                    "they wait for each other");
  result.simulation = std::move(*simulation);
  return result;
}
