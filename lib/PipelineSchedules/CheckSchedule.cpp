//===- CheckSchedule.cpp - Whether a schedule can be run ------------------===//

#include "TaskIndex.h"

#include "shardc/PipelineSchedules/PipelineSchedule.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace shardc;

TaskIndex::TaskIndex(const PipelineSchedule &schedule)
    : microbatches(schedule.microbatches),
      positions(size_t(4) * schedule.getNumStages() * schedule.microbatches,
                -1) {
  for (const auto &tasks : schedule.ranks)
    for (auto [position, task] : llvm::enumerate(tasks))
      positions[getNumber(task)] = static_cast<int>(position);
}

std::vector<PipelineTask>
TaskIndex::getDependences(const PipelineTask &task) const {
  std::vector<PipelineTask> needed;
  auto numStages =
      static_cast<int>(positions.size() / 4 / std::max(microbatches, 1));
  auto addBackward = [&](int stage) {
    PipelineTask input{TaskKind::InputGradient, stage, task.microbatch};
    needed.push_back(
        has(input) ? input
                   : PipelineTask{TaskKind::Backward, stage, task.microbatch});
  };
  switch (task.kind) {
  case TaskKind::Forward:
    if (task.stage > 0)
      needed.push_back({TaskKind::Forward, task.stage - 1, task.microbatch});
    break;
  case TaskKind::Backward:
  case TaskKind::InputGradient:
    needed.push_back({TaskKind::Forward, task.stage, task.microbatch});
    if (task.stage + 1 < numStages)
      addBackward(task.stage + 1);
    break;
  case TaskKind::WeightGradient:
    addBackward(task.stage);
    break;
  }
  return needed;
}

std::vector<PipelineTask>
shardc::getDependences(const PipelineSchedule &schedule,
                       const PipelineTask &task) {
  return TaskIndex(schedule).getDependences(task);
}

static std::string describe(const PipelineTask &task, int rank) {
  return toString(task) + " (rank " + std::to_string(rank) + ")";
}

/// Checks that the tasks of `rank` exist, are its own and are there once.
static llvm::Error checkTasks(const PipelineSchedule &schedule, int rank,
                              llvm::BitVector &seen, const TaskIndex &index) {
  for (const PipelineTask &task : schedule.ranks[rank]) {
    if (task.stage < 0 || task.stage >= schedule.getNumStages() ||
        task.microbatch < 0 || task.microbatch >= schedule.microbatches)
      return llvm::createStringError(
          describe(task, rank) + ": there are stages 0 to " +
          std::to_string(schedule.getNumStages() - 1) +
          " and microbatches 0 to " +
          std::to_string(schedule.microbatches - 1));
    if (schedule.rankOfStage[task.stage] != rank)
      return llvm::createStringError(
          describe(task, rank) + ": the stage is on rank " +
          std::to_string(schedule.rankOfStage[task.stage]));
    if (seen.test(index.getNumber(task)))
      return llvm::createStringError(describe(task, rank) + " is there twice");
    seen.set(index.getNumber(task));
  }
  return llvm::Error::success();
}

/// Checks that each stage has all of its tasks.
static llvm::Error checkComplete(const PipelineSchedule &schedule,
                                 const llvm::BitVector &seen,
                                 const TaskIndex &index) {
  for (int stage = 0; stage < schedule.getNumStages(); ++stage)
    for (int microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
      auto has = [&](TaskKind kind) {
        return seen.test(index.getNumber({kind, stage, microbatch}));
      };
      std::string missing;
      auto require = [&](TaskKind kind) {
        if (!has(kind) && missing.empty())
          missing = toString({kind, stage, microbatch});
      };
      require(TaskKind::Forward);
      bool isSplit =
          has(TaskKind::InputGradient) || has(TaskKind::WeightGradient);
      if (isSplit && has(TaskKind::Backward))
        return llvm::createStringError(
            toString({TaskKind::Backward, stage, microbatch}) +
            " stands beside I or W of the same stage and microbatch, which "
            "are its two parts");
      if (isSplit) {
        require(TaskKind::InputGradient);
        require(TaskKind::WeightGradient);
      } else {
        require(TaskKind::Backward);
      }
      if (!missing.empty())
        return llvm::createStringError(
            missing + " is missing: a stage has for each microbatch F and "
                      "either B or I and W");
    }
  return llvm::Error::success();
}

/// Checks that the losses and gradients of weights are summed in the order of
/// microbatches.
static llvm::Error checkSums(const PipelineSchedule &schedule) {
  std::vector<int> next(schedule.getNumStages(), 0);
  std::vector<int> nextForward(schedule.getNumStages(), 0);
  for (auto [rank, tasks] : llvm::enumerate(schedule.ranks))
    for (const PipelineTask &task : tasks) {
      if (task.kind == TaskKind::InputGradient)
        continue;
      if (task.kind == TaskKind::Forward) {
        if (task.microbatch != nextForward[task.stage]++)
          return llvm::createStringError(
              describe(task, static_cast<int>(rank)) +
              " comes out of order: a stage takes the microbatches in their "
              "order, in which losses are added up");
        continue;
      }
      if (task.microbatch != next[task.stage]++)
        return llvm::createStringError(
            describe(task, static_cast<int>(rank)) +
            " comes out of order: a stage adds up the gradients of its weights "
            "in the order of microbatches, so that every schedule gives the "
            "same sums");
    }
  return llvm::Error::success();
}

/// Runs the tasks without times; an error if that stops before the end.
static llvm::Error checkProgress(const PipelineSchedule &schedule,
                                 const TaskIndex &index) {
  std::vector<size_t> next(schedule.getNumRanks(), 0);
  auto isDone = [&](const PipelineTask &task) {
    return index.getPosition(task) <
           static_cast<int>(next[schedule.rankOfStage[task.stage]]);
  };
  /// The first task that the next one of `rank` waits for, or none.
  auto findAwaited = [&](int rank) -> std::vector<PipelineTask> {
    for (const PipelineTask &needed :
         index.getDependences(schedule.ranks[rank][next[rank]]))
      if (!isDone(needed))
        return {needed};
    return {};
  };
  auto isAtEnd = [&](int rank) {
    return next[rank] == schedule.ranks[rank].size();
  };
  // A rank that waits goes on when the task is done that it waits for.
  llvm::DenseMap<size_t, llvm::SmallVector<int, 1>> waiting;
  std::vector<int> running;
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank)
    running.push_back(rank);
  while (!running.empty()) {
    int rank = running.back();
    running.pop_back();
    while (!isAtEnd(rank)) {
      if (std::vector<PipelineTask> awaited = findAwaited(rank);
          !awaited.empty()) {
        waiting[index.getNumber(awaited.front())].push_back(rank);
        break;
      }
      const PipelineTask &done = schedule.ranks[rank][next[rank]++];
      if (auto found = waiting.find(index.getNumber(done));
          found != waiting.end()) {
        llvm::append_range(running, found->second);
        waiting.erase(found);
      }
    }
  }
  int rank = 0;
  while (rank < schedule.getNumRanks() && isAtEnd(rank))
    ++rank;
  if (rank == schedule.getNumRanks())
    return llvm::Error::success();
  // Every rank that is not at its end waits for one that is not: follow them to
  // a rank of the cycle, then once around.
  auto getAwaitedRank = [&](int waiting) {
    return schedule.rankOfStage[findAwaited(waiting).front().stage];
  };
  for (int step = 0; step < schedule.getNumRanks(); ++step)
    rank = getAwaitedRank(rank);
  std::string message = "the schedule waits forever: ";
  int first = rank;
  do {
    const PipelineTask &waiting = schedule.ranks[rank][next[rank]];
    const PipelineTask awaited = findAwaited(rank).front();
    int other = getAwaitedRank(rank);
    message += describe(waiting, rank) + " waits for " + toString(awaited) +
               ", which stands behind " +
               toString(schedule.ranks[other][next[other]]) + " on rank " +
               std::to_string(other);
    rank = other;
    if (rank != first)
      message += "; ";
  } while (rank != first);
  return llvm::createStringError(message);
}

llvm::Error shardc::checkPipelineSchedule(const PipelineSchedule &schedule) {
  if (schedule.ranks.empty() || schedule.rankOfStage.empty() ||
      schedule.microbatches < 1)
    return llvm::createStringError(
        "a schedule needs at least one stage and one microbatch");
  if (schedule.microbatches > maxPipelineTasks / 3 / schedule.getNumStages())
    return llvm::createStringError(
        std::to_string(schedule.microbatches) + " microbatches on " +
        std::to_string(schedule.getNumStages()) + " stages are more than " +
        std::to_string(maxPipelineTasks) + " tasks");
  TaskIndex numbers(schedule.microbatches);
  llvm::BitVector seen(4 * schedule.getNumStages() * schedule.microbatches);
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank)
    if (llvm::Error error = checkTasks(schedule, rank, seen, numbers))
      return error;
  if (llvm::Error error = checkComplete(schedule, seen, numbers))
    return error;
  if (llvm::Error error = checkSums(schedule))
    return error;
  return checkProgress(schedule, TaskIndex(schedule));
}

std::vector<double>
shardc::countLiveMicrobatches(const PipelineSchedule &schedule) {
  std::vector<double> most;
  for (const auto &tasks : schedule.ranks) {
    int live = 0, peak = 0;
    for (const PipelineTask &task : tasks) {
      if (task.kind == TaskKind::Forward)
        peak = std::max(peak, ++live);
      else if (task.kind != TaskKind::InputGradient)
        --live;
    }
    auto stages =
        llvm::count(schedule.rankOfStage, static_cast<int>(most.size()));
    most.push_back(static_cast<double>(peak) /
                   static_cast<double>(std::max<int64_t>(stages, 1)));
  }
  return most;
}
