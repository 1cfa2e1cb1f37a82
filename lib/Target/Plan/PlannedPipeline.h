//===- PlannedPipeline.h - The pipeline of a plan over time -----*- C++ -*-===//
//
// The schedule that a plan has, simulated with the estimated times that it has.
// A pure function.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_LIB_TARGET_PLAN_PLANNEDPIPELINE_H
#define SHARDC_LIB_TARGET_PLAN_PLANNEDPIPELINE_H

#include "shardc/PipelineSchedules/SimulateSchedule.h"

#include "plan_generated.h"

#include "llvm/Support/Error.h"

namespace shardc {

struct PlannedPipeline {
  PipelineSchedule schedule;
  /// Of the tasks and the transfers between them alone: it begins with the
  /// first task and ends with the last.
  PipelineSimulation simulation;
  /// By rank (`countLiveMicrobatches`).
  std::vector<double> liveMicrobatches;
  /// By rank its train step.
  std::vector<const rt::fb::Program *> steps;

  /// The share of the makespan in which `rank` idles.
  double getIdleShare(size_t rank) const;
};

/// The train step of `plan`, which has a pipeline. An error if its tasks are no
/// schedule that can be run, as those of an edited file may be.
llvm::Expected<PlannedPipeline> getPlannedPipeline(const rt::fb::Plan &plan);

} // namespace shardc

#endif // SHARDC_LIB_TARGET_PLAN_PLANNEDPIPELINE_H
