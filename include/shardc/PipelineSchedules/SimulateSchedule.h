//===- SimulateSchedule.h - The time of a pipeline's step -------*- C++ -*-===//
//
// Discrete-event simulation: each rank runs its tasks in order, each as soon as
// the results that it needs are there. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_SIMULATESCHEDULE_H
#define SHARDC_PIPELINESCHEDULES_SIMULATESCHEDULE_H

#include "shardc/PipelineSchedules/PipelineSchedule.h"

namespace shardc {

/// The times of a stage on one microbatch, in seconds. A backward task in one
/// part takes the sum of both gradients.
struct StageTimes {
  double forward = 0;
  double inputGradient = 0;
  double weightGradient = 0;
  /// From the end of a forward task until its result is on the rank of the next
  /// stage, if that is another one. None for the last stage.
  double sendForward = 0;
  /// The same of an input's gradient, for the stage before. None for the first.
  double sendBackward = 0;
};

struct SimulatedTask {
  double start, end;
};

struct PipelineSimulation {
  /// As in the schedule.
  std::vector<std::vector<SimulatedTask>> tasks;
  /// By task its place in an order in which each follows those that it needs.
  std::vector<std::vector<int>> order;
  /// By rank the seconds in which it runs tasks.
  std::vector<double> busy;
  /// The end of the last task.
  double makespan = 0;

  /// The share of the makespan in which ranks idle, on average; 0 if it is 0.
  double getBubble() const;
};

/// Simulates one schedule with many times. Tasks are put in an order in which
/// each follows those that it needs, once; a simulation goes through it once.
class ScheduleSimulator {
public:
  /// `schedule` passes `checkPipelineSchedule`, and need not outlive this.
  explicit ScheduleSimulator(const PipelineSchedule &schedule);

  /// The makespan with the times of each stage.
  double getMakespan(llvm::ArrayRef<StageTimes> stages);

  /// The makespan with the seconds of each task, as in the schedule. `stages`
  /// has the times of transfers alone.
  double getMakespan(llvm::ArrayRef<StageTimes> stages,
                     llvm::ArrayRef<std::vector<double>> seconds);

  /// By task the last times simulated, in the order of the schedule.
  PipelineSimulation getSimulation() const;

private:
  /// A task; other tasks are numbered by their places in `tasks`.
  struct Task {
    TaskKind kind;
    int stage;
    int rank;
    int position;    ///< Among the tasks of its rank.
    int before;      ///< The one before it on its rank, or -1.
    int needed[2];   ///< Those whose results it needs, or -1.
    bool crosses[2]; ///< Whether these are on other ranks.
  };

  template <typename GetSeconds>
  double simulate(llvm::ArrayRef<StageTimes> stages, GetSeconds getSeconds);

  int numRanks;
  std::vector<Task> tasks;
  std::vector<SimulatedTask> times;
};

/// Simulates `schedule`, which passes `checkPipelineSchedule`, with the times
/// of each stage. Transfers take their time, and do not slow each other down.
PipelineSimulation simulateSchedule(const PipelineSchedule &schedule,
                                    llvm::ArrayRef<StageTimes> stages);

/// The same with the seconds of each task, as in the schedule; `stages` has the
/// times of transfers alone.
PipelineSimulation
simulateSchedule(const PipelineSchedule &schedule,
                 llvm::ArrayRef<StageTimes> stages,
                 llvm::ArrayRef<std::vector<double>> seconds);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_SIMULATESCHEDULE_H
