//===- SimulateSchedule.cpp - The time of a pipeline's step ---------------===//

#include "shardc/PipelineSchedules/SimulateSchedule.h"

#include "TaskIndex.h"

#include <algorithm>

using namespace shardc;

static double getSeconds(const StageTimes &stage, TaskKind kind) {
  switch (kind) {
  case TaskKind::Forward:
    return stage.forward;
  case TaskKind::Backward:
    return stage.inputGradient + stage.weightGradient;
  case TaskKind::InputGradient:
    return stage.inputGradient;
  case TaskKind::WeightGradient:
    return stage.weightGradient;
  }
  return 0;
}

double PipelineSimulation::getBubble() const {
  if (makespan == 0)
    return 0;
  double sum = 0;
  for (double seconds : busy)
    sum += seconds;
  return 1 - sum / (makespan * static_cast<double>(busy.size()));
}

PipelineSimulation shardc::simulateSchedule(const PipelineSchedule &schedule,
                                            llvm::ArrayRef<StageTimes> stages) {
  TaskIndex index(schedule);
  PipelineSimulation result;
  result.tasks.resize(schedule.getNumRanks());
  result.busy.assign(schedule.getNumRanks(), 0);

  /// When the result of `needed` is on the rank of `task`; negative: not yet.
  auto getArrival = [&](const PipelineTask &needed, const PipelineTask &task) {
    int from = schedule.rankOfStage[needed.stage];
    auto position = static_cast<size_t>(index.getPosition(needed));
    if (position >= result.tasks[from].size())
      return -1.0;
    double end = result.tasks[from][position].end;
    if (from == schedule.rankOfStage[task.stage])
      return end;
    const StageTimes &stage = stages[needed.stage];
    return end + (needed.kind == TaskKind::Forward ? stage.sendForward
                                                   : stage.sendBackward);
  };
  /// Runs the next task of `rank`, if it can.
  auto runNext = [&](int rank) {
    const std::vector<PipelineTask> &tasks = schedule.ranks[rank];
    std::vector<SimulatedTask> &done = result.tasks[rank];
    if (done.size() == tasks.size())
      return false;
    const PipelineTask &task = tasks[done.size()];
    double start = done.empty() ? 0 : done.back().end;
    for (const PipelineTask &needed : index.getDependences(task)) {
      double arrival = getArrival(needed, task);
      if (arrival < 0)
        return false;
      start = std::max(start, arrival);
    }
    double seconds = getSeconds(stages[task.stage], task.kind);
    done.push_back({start, start + seconds});
    result.busy[rank] += seconds;
    result.makespan = std::max(result.makespan, start + seconds);
    return true;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (int rank = 0; rank < schedule.getNumRanks(); ++rank)
      while (runNext(rank))
        changed = true;
  }
  return result;
}
