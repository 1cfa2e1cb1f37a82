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

ScheduleSimulator::ScheduleSimulator(const PipelineSchedule &schedule)
    : numRanks(schedule.getNumRanks()) {
  TaskIndex index(schedule);
  // By rank the places of its tasks in `tasks`.
  std::vector<std::vector<int>> places(numRanks);
  auto addNext = [&](int rank) {
    if (places[rank].size() == schedule.ranks[rank].size())
      return false;
    const PipelineTask &task = schedule.ranks[rank][places[rank].size()];
    Task added{task.kind,
               task.stage,
               rank,
               static_cast<int>(places[rank].size()),
               places[rank].empty() ? -1 : places[rank].back(),
               {-1, -1},
               {false, false}};
    int number = 0;
    for (const PipelineTask &needed : index.getDependences(task)) {
      int other = schedule.rankOfStage[needed.stage];
      auto position = static_cast<size_t>(index.getPosition(needed));
      if (position >= places[other].size())
        return false;
      added.needed[number] = places[other][position];
      added.crosses[number++] = other != rank;
    }
    places[rank].push_back(static_cast<int>(tasks.size()));
    tasks.push_back(added);
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (int rank = 0; rank < numRanks; ++rank)
      while (addNext(rank))
        changed = true;
  }
  times.resize(tasks.size());
}

template <typename GetSeconds>
double ScheduleSimulator::simulate(llvm::ArrayRef<StageTimes> stages,
                                   GetSeconds getSeconds) {
  double makespan = 0;
  for (size_t number = 0; number < tasks.size(); ++number) {
    const Task &task = tasks[number];
    double start = task.before < 0 ? 0 : times[task.before].end;
    for (int operand = 0; operand < 2; ++operand) {
      if (task.needed[operand] < 0)
        continue;
      const Task &needed = tasks[task.needed[operand]];
      double arrival = times[task.needed[operand]].end;
      if (task.crosses[operand])
        arrival += needed.kind == TaskKind::Forward
                       ? stages[needed.stage].sendForward
                       : stages[needed.stage].sendBackward;
      start = std::max(start, arrival);
    }
    times[number] = {start, start + getSeconds(task)};
    makespan = std::max(makespan, times[number].end);
  }
  return makespan;
}

double ScheduleSimulator::getMakespan(llvm::ArrayRef<StageTimes> stages) {
  return simulate(stages, [&](const Task &task) {
    return getSeconds(stages[task.stage], task.kind);
  });
}

double
ScheduleSimulator::getMakespan(llvm::ArrayRef<StageTimes> stages,
                               llvm::ArrayRef<std::vector<double>> seconds) {
  return simulate(stages, [&](const Task &task) {
    return seconds[task.rank][task.position];
  });
}

PipelineSimulation ScheduleSimulator::getSimulation() const {
  PipelineSimulation result;
  result.tasks.resize(numRanks);
  result.order.resize(numRanks);
  result.busy.assign(numRanks, 0);
  for (size_t number = 0; number < tasks.size(); ++number) {
    int rank = tasks[number].rank;
    SimulatedTask time = times[number];
    result.tasks[rank].push_back(time);
    result.order[rank].push_back(static_cast<int>(number));
    result.busy[rank] += time.end - time.start;
    result.makespan = std::max(result.makespan, time.end);
  }
  return result;
}

PipelineSimulation shardc::simulateSchedule(const PipelineSchedule &schedule,
                                            llvm::ArrayRef<StageTimes> stages) {
  ScheduleSimulator simulator(schedule);
  simulator.getMakespan(stages);
  return simulator.getSimulation();
}

PipelineSimulation
shardc::simulateSchedule(const PipelineSchedule &schedule,
                         llvm::ArrayRef<StageTimes> stages,
                         llvm::ArrayRef<std::vector<double>> seconds) {
  ScheduleSimulator simulator(schedule);
  simulator.getMakespan(stages, seconds);
  return simulator.getSimulation();
}
