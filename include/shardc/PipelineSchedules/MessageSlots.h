//===- MessageSlots.h - Where the messages of tasks start -------*- C++ -*-===//
//
// The results of tasks cross between ranks as messages. All ranks start them in
// one order, that of the time at which they are sent: then no rank waits
// forever, wherever it waits for their ends. Plain functions; thread-safe.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_PIPELINESCHEDULES_MESSAGESLOTS_H
#define SHARDC_PIPELINESCHEDULES_MESSAGESLOTS_H

#include "shardc/PipelineSchedules/SimulateSchedule.h"

namespace shardc {

/// A message from one rank to another. Tasks are given by their places on their
/// ranks. Slot i of a rank is before its task i; the last one is behind all.
struct PipelineMessage {
  int from, to;
  /// The task that makes it, on rank `from`.
  int producer;
  /// The first task that uses it, on rank `to`; the number of tasks: none.
  int consumer;

  /// Its place in the order of all messages.
  int number = -1;
  /// The slots of the send and of the receive: of its start and of its end.
  int sendStart = -1, sendEnd = -1, receiveStart = -1, receiveEnd = -1;
};

/// Numbers the messages and finds their slots, if tasks run as simulated.
///
/// - A send starts right behind its producer, and ends before the first task
///   that starts when the message can have crossed: it waits for nobody who is
///   as fast as estimated.
/// - A receive starts a task before the consumer, so that it crosses while that
///   task runs, and ends before the consumer. It starts earlier where a message
///   with a higher number starts earlier, or where one of the sender's would
///   have to wait for it.
void placeMessages(const PipelineSimulation &simulation,
                   std::vector<PipelineMessage> &messages);

/// By slot of a rank the messages, as indices, that start and that end there,
/// in the order of their numbers. Those that start come first.
struct RankSlots {
  std::vector<std::vector<int>> starts, ends;
};

/// The slots of `rank`, which has `tasks` tasks.
RankSlots getSlots(llvm::ArrayRef<PipelineMessage> messages, int rank,
                   int tasks);

} // namespace shardc

#endif // SHARDC_PIPELINESCHEDULES_MESSAGESLOTS_H
