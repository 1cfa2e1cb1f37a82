//===- CheckPipeline.h - Whether the ranks of a pipeline fit ----*- C++ -*-===//
//
// The ranks of a pipeline run programs of their own and meet in sends, receives
// and collectives over the pipeline's axis. For each program name one graph
// joins the commands of all ranks. Its nodes are
//
//  - each command, of which a start is its issue alone;
//  - the end of each send, receive and collective. The send and the receive of
//    a message have one end together, and so have the k-th collectives over the
//    pipeline's axis of all ranks. On GPUs two opposite messages between two
//    ranks have one end as well where they may cross at the same time.
//
// Edges lead from an issue to its end, and on each rank from an end to that of
// the communication that starts next there. On a CPU the others are the order
// of each rank's list, and from an end to its waits; on a GPU the order of each
// stream, and those from a command to the ones behind it in `after`, where a
// start is complete when it has ended. A graph without a cycle has an order in
// which everything runs, whatever a runtime buffers: no run can wait forever.
// Ranks share no memory, so that HappensBefore need only look at one rank at a
// time.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_PLAN_CHECKPIPELINE_H
#define SHARDC_RT_SRC_PLAN_CHECKPIPELINE_H

#include "plan/PlanSpec.h"

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shardc::rt {

/// A command of the program of one rank.
struct RankCommand {
  int rank;
  uint32_t command;
};

/// Commands that take place together: the send, then the receive of a message,
/// and behind them those of another message that crosses at the same time; a
/// collective over the pipeline's axis on all ranks, in their order; any other
/// command alone.
using PipelineStep = absl::InlinedVector<RankCommand, 2>;

/// The seconds that the parts of a program take, which has a pipeline.
struct PipelineTimes {
  /// By rank and task.
  std::vector<std::vector<double>> tasks;
  /// By message. Messages before the first task of their rank take none.
  std::vector<double> messages;
};

/// An order in which one thread can run a program of all ranks.
struct PipelineOrder {
  /// Each command once, communication where it ends and waits not at all.
  std::vector<PipelineStep> steps;
  /// Of the same steps, ascending: none needs another one of its round. Threads
  /// that share each step need only wait for one another between rounds.
  std::vector<int64_t> rounds;
  /// Indices of the steps by the time at which they start: the commands of a
  /// task are neighbours.
  std::vector<size_t> sequence;
  int64_t messages = 0;
  /// Pairs of opposite messages that cross at the same time, on GPUs.
  int64_t messagePairs = 0;
  int64_t jointCollectives = 0; ///< Over the pipeline's axis.
  int64_t nodes = 0;
  /// The most nodes of which each comes after the one before.
  int64_t longestChain = 0;
  /// The makespan: until the last task ends if tasks and messages take as long
  /// as given, on one clock per rank, and everything else takes no time.
  double seconds = 0;
  /// The share of the makespan in which ranks run no task, on average; 0
  /// without tasks.
  double bubble = 0;

  /// The same steps in their sequence, each a round of its own: better for
  /// caches, where threads cannot share the steps of a round.
  PipelineOrder inSequence() const;
};

/// The times that the plan has for program number `program`, estimated. The
/// indices of the plan must be sound.
PipelineTimes estimatedTimes(const PlanSpec &plan, size_t program);

/// Orders program number `program` of the ranks of `plan`, which has a
/// pipeline: tasks by the time at which they start if parts take as long as
/// `times` says, by default as long as estimated. DataLoss: a message without
/// its one send and receive of the same sizes, collectives of the ranks that
/// differ, or a program that would wait forever; then the error names two
/// commands that wait for each other. The indices of the plan must be sound.
/// Thread-safe.
[[nodiscard]] absl::StatusOr<PipelineOrder> orderPipeline(const PlanSpec &plan,
                                                          size_t program);
[[nodiscard]] absl::StatusOr<PipelineOrder>
orderPipeline(const PlanSpec &plan, size_t program, const PipelineTimes &times);

/// Checks the ranks of a plan with a pipeline against each other: the places of
/// tensors, programs, results, tasks, and for each program that it has an
/// order.
[[nodiscard]] absl::Status checkPipeline(const PlanSpec &plan);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_PLAN_CHECKPIPELINE_H
