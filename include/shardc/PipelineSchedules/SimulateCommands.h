//===- SimulateCommands.h - The time of ranks' commands ---------*- C++ -*-===//
//
// Runs the commands of a pipeline's ranks in time by the rules of the runtime
// (runtime/src/plan/CheckPipeline.h): a rank has one message or collective at a
// time, in the order in which they start, and so has the rank at its other end.
// Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_SIMULATECOMMANDS_H
#define SHARDC_PIPELINESCHEDULES_SIMULATECOMMANDS_H

#include "shardc/PipelineSchedules/SimulateSchedule.h"

#include <optional>

namespace shardc {

/// A command of a rank.
struct PipelineCommand {
  enum class Kind {
    Work,
    Send,
    Receive,
    /// Over devices of one rank.
    Collective,
    /// Over the axis of the pipeline: the k-th of all ranks are one.
    JointCollective,
    /// Until what `after` names has ended.
    Wait
  } kind = Kind::Work;
  /// Its task among those of the rank; negative: none.
  int task = -1;
  /// What a send or a receive moves.
  int64_t message = -1;
  /// Of a send, until it has been received.
  double seconds = 0;
  /// Commands before it on its rank that have to be complete.
  std::vector<int> after;
  /// Whether it is not issued before the command in front of it: on CPUs, where
  /// a rank runs a list.
  bool isInList = true;
};

/// The tasks of `ranks` over time, each of which takes its `seconds`. The time
/// of a task passes with its first command that works, so that messages leave
/// at its end. Messages before the first task of their rank take no time, nor
/// do collectives, whose time belongs to tasks. Nullopt if ranks would wait for
/// each other, a message has no other end, or a task that takes time has no
/// command.
std::optional<PipelineSimulation>
simulateCommands(llvm::ArrayRef<std::vector<PipelineCommand>> ranks,
                 llvm::ArrayRef<std::vector<double>> seconds);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_SIMULATECOMMANDS_H
