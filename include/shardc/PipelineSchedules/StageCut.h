//===- StageCut.h - Where to cut a model into stages ------------*- C++ -*-===//
//
// A model is a list of ops in program order; a cut gives each stage consecutive
// ones. The time of a step is not that of its largest stage alone, so cuts are
// compared by simulation: all of them where there are few, otherwise those of a
// local search from cuts whose largest stage is least, which dynamic
// programming finds. The search ends after a fixed number of simulated tasks:
// for many stages it goes less far from those cuts. Plain functions;
// thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_STAGECUT_H
#define SHARDC_PIPELINESCHEDULES_STAGECUT_H

#include "shardc/PipelineSchedules/SimulateSchedule.h"

#include <map>
#include <mutex>
#include <string>

namespace shardc {

/// The times of an op on one microbatch. `sendForward` and `sendBackward` are
/// those of all values and gradients that cross if a stage ends with this op,
/// each in its direction.
using OpTimes = StageTimes;

/// A cut: by stage the number of ops before its end, ascending. The last is the
/// number of all ops.
using StageCut = std::vector<size_t>;

/// The times of the stages that `cut` makes of `ops`.
std::vector<StageTimes> getStageTimes(llvm::ArrayRef<OpTimes> ops,
                                      const StageCut &cut);

/// Limits on the ops of ranks, by their weights. No limits if both are empty.
struct CutLimits {
  /// By op, such as the bytes that it keeps.
  std::vector<double> weights;
  /// By rank the greatest sum over its ops; may be infinite.
  std::vector<double> most;
};

/// By rank the sum of `weights` over the ops that it has in `cut`.
std::vector<double> getRankWeights(llvm::ArrayRef<double> weights,
                                   const StageCut &cut,
                                   const PipelineSchedule &schedule);

/// A cut of `ops`, of which there are as many as stages of `schedule` or more,
/// whose step is short as `simulateSchedule` sees it, among the cuts tried that
/// keep `limits`, or else exceed them least. Every stage has an op. `schedule`
/// passes `checkPipelineSchedule`. Deterministic.
StageCut findStageCut(llvm::ArrayRef<OpTimes> ops,
                      const PipelineSchedule &schedule,
                      const CutLimits &limits = {});

/// The cuts that have been found, for many plans of one model: the times of its
/// ops are the same for all of them. Thread-safe.
class StageCutCache {
public:
  /// As `findStageCut`.
  StageCut find(llvm::ArrayRef<OpTimes> ops, const PipelineSchedule &schedule);

private:
  std::mutex mutex;
  /// By the bytes of all times, and the schedule in words.
  std::map<std::string, StageCut> cuts;
};

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_STAGECUT_H
