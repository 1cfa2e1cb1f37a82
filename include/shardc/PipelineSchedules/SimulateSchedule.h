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
  /// By rank the seconds in which it runs tasks.
  std::vector<double> busy;
  /// The end of the last task.
  double makespan = 0;

  /// The share of the makespan in which ranks idle, on average; 0 if it is 0.
  double getBubble() const;
};

/// Simulates `schedule`, which passes `checkPipelineSchedule`, with the times
/// of each stage. Transfers take their time, and do not slow each other down.
PipelineSimulation simulateSchedule(const PipelineSchedule &schedule,
                                    llvm::ArrayRef<StageTimes> stages);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_SIMULATESCHEDULE_H
