//===- TaskIndex.h - The place of each task in a schedule -------*- C++ -*-===//

#ifndef SHARDC_LIB_PIPELINESCHEDULES_TASKINDEX_H
#define SHARDC_LIB_PIPELINESCHEDULES_TASKINDEX_H

#include "shardc/PipelineSchedules/PipelineSchedule.h"

namespace shardc {

/// Finds tasks by kind, stage and microbatch. Numbers must be in range.
class TaskIndex {
public:
  /// Indexes the tasks of `schedule`.
  explicit TaskIndex(const PipelineSchedule &schedule);
  /// Numbers tasks alone.
  explicit TaskIndex(int microbatches) : microbatches(microbatches) {}

  /// The number of `task` among those of all kinds, stages and microbatches.
  size_t getNumber(const PipelineTask &task) const {
    return (size_t(task.stage) * microbatches + task.microbatch) * 4 +
           static_cast<size_t>(task.kind);
  }
  /// The position of `task` on its rank, or -1.
  int getPosition(const PipelineTask &task) const {
    return positions[getNumber(task)];
  }
  bool has(const PipelineTask &task) const { return getPosition(task) >= 0; }
  /// The tasks that `task` needs the results of.
  std::vector<PipelineTask> getDependences(const PipelineTask &task) const;

private:
  int microbatches;
  std::vector<int> positions;
};

} // namespace shardc

#endif // SHARDC_LIB_PIPELINESCHEDULES_TASKINDEX_H
