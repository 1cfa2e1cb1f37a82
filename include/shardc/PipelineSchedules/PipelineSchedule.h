//===- PipelineSchedule.h - The order of a pipeline's tasks -----*- C++ -*-===//
//
// A model is cut into stages, and a batch into microbatches. A schedule says in
// which order each rank (the devices that share some stages) runs the forward
// and backward tasks of its stages. Schedules are data: built by name, or read
// from text (ScheduleText.h). Plain values and functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_PIPELINESCHEDULE_H
#define SHARDC_PIPELINESCHEDULES_PIPELINESCHEDULE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardc {

/// The work of one stage on one microbatch. A backward pass is one task, or
/// two: the gradients of the stage's inputs, and those of its weights.
enum class TaskKind { Forward, Backward, InputGradient, WeightGradient };

struct PipelineTask {
  TaskKind kind;
  int stage;
  int microbatch;

  bool operator==(const PipelineTask &other) const {
    return kind == other.kind && stage == other.stage &&
           microbatch == other.microbatch;
  }
};

/// The task as text: "2F0" is the forward pass of stage 2 on microbatch 0; the
/// other letters are B, I and W.
std::string toString(const PipelineTask &task);

struct PipelineSchedule {
  /// By rank its tasks, in order.
  std::vector<std::vector<PipelineTask>> ranks;
  /// By stage the rank that runs it.
  std::vector<int> rankOfStage;
  int microbatches = 0;

  int getNumStages() const { return static_cast<int>(rankOfStage.size()); }
  int getNumRanks() const { return static_cast<int>(ranks.size()); }
};

/// The most tasks of a schedule.
inline constexpr int64_t maxPipelineTasks = int64_t(1) << 22;

/// The names of the schedules that `makePipelineSchedule` knows.
llvm::ArrayRef<llvm::StringRef> getPipelineScheduleNames();

/// Checks that `ranks` with `chunks` stages each and `microbatches` are at
/// least 1 each, and that their schedules have at most maxPipelineTasks tasks.
llvm::Error checkPipelineSize(int64_t ranks, int64_t chunks,
                              int64_t microbatches);

/// The schedule `name` of `microbatches` on `ranks` with `chunks` stages each.
/// Stage s is on rank s mod `ranks`. Backward tasks of a stage
/// are in the order of microbatches.
///
///   gpipe        all forward tasks, then all backward tasks (Huang et al.,
///                arXiv 1811.06965)
///   1f1b         a backward task as early as possible (Narayanan et al.,
///                arXiv 2006.09503)
///   interleaved  1f1b with several stages per rank (arXiv 2104.04473)
///   zero-bubble  1f1b with delayed gradients of weights, ZB-H1 (Qi et al.,
///                arXiv 2401.10241)
///
/// An error if the name is unknown, the numbers do not suit it, or
/// `checkPipelineSize` finds one.
llvm::Expected<PipelineSchedule> makePipelineSchedule(llvm::StringRef name,
                                                      int64_t ranks,
                                                      int64_t chunks,
                                                      int64_t microbatches);

/// Checks that `schedule` can be run: every stage has for every microbatch a
/// forward task and a backward task in one or two parts, each once and on the
/// stage's rank; forward passes and gradients of weights are in the order of
/// microbatches; and no
/// task waits forever. The error of the last names the tasks that wait for each
/// other.
llvm::Error checkPipelineSchedule(const PipelineSchedule &schedule);

/// The tasks that `task` needs the results of: of a forward task that of the
/// stage before; of a backward task the forward task of its stage and the
/// backward task of the stage behind, which is in two parts iff the schedule
/// has them; of the gradients of weights those of inputs.
std::vector<PipelineTask> getDependences(const PipelineSchedule &schedule,
                                         const PipelineTask &task);

/// By rank the most microbatches that are live at once: from a forward task to
/// the last of its backward tasks. A rank with several stages counts each of
/// them as that part of a microbatch.
std::vector<double> countLiveMicrobatches(const PipelineSchedule &schedule);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_PIPELINESCHEDULE_H
