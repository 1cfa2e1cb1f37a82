//===- RemoteMessages.cpp - Messages of a pipeline to other processes -----===//

#include "exec/RemoteMessages.h"

#include "plan/Accesses.h"

#include "absl/algorithm/container.h"

using namespace shardc::rt;

int DeviceProcesses::processOf(int rank, int64_t device) const {
  int process = 0;
  while (!devicesOf(rank, process).contains(device))
    ++process;
  return process;
}

bool DeviceProcesses::cross(int from, int to) const {
  for (int process = 0; process < size(); ++process)
    if (crossAt(process, from, to))
      return true;
  return false;
}

namespace {

/// Goes through an order and the lists of the ranks at the same time.
class RemoteSteps {
public:
  RemoteSteps(const PlanSpec &plan, size_t program,
              const DeviceProcesses &processes)
      : plan(plan), number(program), processes(processes),
        next(plan.ranks().size()) {}

  void add(const PipelineStep &step);
  /// Adds what is left of the lists.
  std::vector<PipelineStep> finish();

private:
  const std::vector<Command> &commandsOf(int rank) const {
    return plan.ranks()[rank].programs[number].commands;
  }
  /// The other rank of a message; negative: the command is something else.
  static int peerOf(const Command &command);
  bool isRemote(int rank, uint32_t command) const;
  /// Whether a command is the start of a collective on the devices of `rank`
  /// alone, or its wait. The same in all processes.
  bool isOfCollective(int rank, uint32_t command) const;
  /// Passes the commands of a rank up to `end`.
  void advance(int rank, uint32_t end);

  const PlanSpec &plan;
  size_t number;
  const DeviceProcesses &processes;
  std::vector<uint32_t> next; ///< By rank, the command to come.
  std::vector<PipelineStep> steps;
};

} // namespace

int RemoteSteps::peerOf(const Command &command) {
  if (auto *send = std::get_if<SendCommand>(&command.operation))
    return send->peer;
  auto *receive = std::get_if<ReceiveCommand>(&command.operation);
  return receive ? receive->peer : -1;
}

bool RemoteSteps::isRemote(int rank, uint32_t command) const {
  const std::vector<Command> &commands = commandsOf(rank);
  auto *wait = std::get_if<CollectiveWaitCommand>(&commands[command].operation);
  int peer = peerOf(commands[wait ? wait->start : command]);
  return peer >= 0 && processes.crossHere(rank, peer);
}

bool RemoteSteps::isOfCollective(int rank, uint32_t command) const {
  const std::vector<Command> &commands = commandsOf(rank);
  auto *wait = std::get_if<CollectiveWaitCommand>(&commands[command].operation);
  auto *start = std::get_if<CollectiveStartCommand>(
      &commands[wait ? wait->start : command].operation);
  return start && !plan.ranks()[rank].isOverRanks(*start);
}

void RemoteSteps::advance(int rank, uint32_t end) {
  for (; next[rank] < end; ++next[rank])
    if (isRemote(rank, next[rank]) || isOfCollective(rank, next[rank]))
      steps.push_back({{rank, next[rank]}});
}

/// Starts come as early as their rank lets them, waits as late.
void RemoteSteps::add(const PipelineStep &step) {
  for (RankCommand place : step)
    advance(place.rank, place.command + 1);
  if (!isOfCollective(step[0].rank, step[0].command))
    steps.push_back(step);
  for (RankCommand place : step) {
    const std::vector<Command> &commands = commandsOf(place.rank);
    uint32_t behind = next[place.rank];
    while (behind < commands.size() && isCommunication(commands[behind]))
      ++behind;
    advance(place.rank, behind);
  }
}

std::vector<PipelineStep> RemoteSteps::finish() {
  for (size_t rank = 0; rank < next.size(); ++rank)
    advance(rank, commandsOf(rank).size());
  return std::move(steps);
}

PipelineOrder shardc::rt::addRemoteSteps(const PlanSpec &plan, size_t program,
                                         const PipelineOrder &order,
                                         const DeviceProcesses &processes) {
  RemoteSteps steps(plan, program, processes);
  for (const PipelineStep &step : order.steps)
    steps.add(step);
  PipelineOrder result = order;
  result.steps = steps.finish();
  result.rounds.resize(result.steps.size());
  absl::c_iota(result.rounds, 0);
  result.sequence.resize(result.steps.size());
  absl::c_iota(result.sequence, 0);
  return result;
}

absl::Status RemoteMessages::start() {
  started = transport.start(messages, channel);
  return started.status();
}

absl::Status RemoteMessages::finish() {
  return started.ok() ? transport.finish(*started) : started.status();
}
