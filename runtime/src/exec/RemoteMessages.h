//===- RemoteMessages.h - Messages to other processes -----------*- C++ -*-===//
//
// Of several processes each runs the commands of its own devices, in the one
// order of the joint graph (plan/CheckPipeline.h). A message to or from another
// process starts where its rank issues it and ends at its wait, so that it is
// in flight while the process computes. No run waits forever: all processes
// place starts and waits by the same rule in the same order, each start before
// the end of its message and each wait behind it. The first of all waits in
// this order that have not ended has both of its starts behind it, or is that
// of a collective, at the same place in all processes: each comes to it.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_EXEC_REMOTEMESSAGES_H
#define SHARDC_RT_SRC_EXEC_REMOTEMESSAGES_H

#include "comm/Transport.h"
#include "plan/CheckPipeline.h"

namespace shardc::rt {

/// The processes that have the devices of a plan. Borrows the plan. Immutable.
class DeviceProcesses {
public:
  /// Without a transport there is one process.
  DeviceProcesses(const PlanSpec &plan, Transport *transport)
      : plan(plan), link(transport) {}

  /// Null: there is one process.
  Transport *transport() const { return link; }
  int own() const { return link ? link->rank() : 0; }
  int size() const { return link ? link->size() : 1; }

  /// Of device `device` of a pipeline rank.
  int processOf(int rank, int64_t device) const;
  /// The devices of a pipeline rank that a process has.
  DeviceRange devicesOf(int rank, int process) const {
    return plan.devicesOf(
        rank, devicesOfProcess(plan.mesh.numDevices(), process, size()));
  }
  /// Whether messages between two ranks come to this process from another one,
  /// or go there.
  bool crossHere(int from, int to) const { return crossAt(own(), from, to); }
  /// Whether any of them cross processes.
  bool cross(int from, int to) const;

private:
  bool crossAt(int process, int from, int to) const {
    return devicesOf(from, process) != devicesOf(to, process);
  }

  const PlanSpec &plan;
  Transport *link;
};

/// `order`, a sequence, with further steps of one command: starts of messages
/// that come to this process from another one or go there, and waits for them.
/// The steps of such messages stay, for devices that share a process.
/// Collectives of one rank become two steps, at the same places in all
/// processes: the start, from which on they are in flight, and the wait.
PipelineOrder addRemoteSteps(const PlanSpec &plan, size_t program,
                             const PipelineOrder &order,
                             const DeviceProcesses &processes);

/// What a send or a receive exchanges with other processes. One run at a time.
class RemoteMessages {
public:
  /// The transport outlives it.
  RemoteMessages(Transport &transport, uint32_t channel,
                 std::vector<Transport::Message> messages)
      : transport(transport), channel(channel), messages(std::move(messages)) {}

  absl::Span<const Transport::Message> all() const { return messages; }

  [[nodiscard]] absl::Status start();
  /// Errors: `Transport::finish`, and those of the start again.
  [[nodiscard]] absl::Status finish();

private:
  Transport &transport;
  const uint32_t channel;
  const std::vector<Transport::Message> messages;
  absl::StatusOr<Transport::Exchange> started = nullptr;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_EXEC_REMOTEMESSAGES_H
