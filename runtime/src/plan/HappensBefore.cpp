//===- HappensBefore.cpp - Whether a program's accesses are ordered -------===//

#include "plan/HappensBefore.h"

#include "plan/Accesses.h"

#include "absl/strings/str_cat.h"

using namespace shardc::rt;

namespace {

constexpr size_t numStreams = 3;

/// A vector clock: by lane, the number of issues that come before. Lanes are
/// the streams and, on a CPU, one for each collective or transfer in flight.
using VectorClock = std::vector<size_t>;

class OrderChecker {
public:
  OrderChecker(const PlanSpec &plan, const ProgramSpec &program)
      : plan(plan), program(program), latest(program.commands.size()),
        lanes(numStreams) {}

  absl::StatusOr<OrderReport> run();

private:
  struct Lane {
    std::vector<uint32_t> issued; ///< Commands in order.
    VectorClock clock;            ///< Of the last one, itself included.
    bool isUnderWay = false;      ///< With communication of a CPU.
  };

  void noteAccesses();
  absl::Status issue(uint32_t number);
  size_t chooseLane(const Command &command);
  absl::Status compare(uint32_t earlier, uint32_t later) const;
  std::string describeCommand(uint32_t number) const;

  const PlanSpec &plan;
  const ProgramSpec &program;
  /// By command.
  std::vector<std::vector<Access>> accesses;
  /// By command: the clock of its latest issue, itself included; at first
  /// empty.
  std::vector<VectorClock> latest;
  std::vector<Lane> lanes;
  OrderReport report;
};

} // namespace

static void join(VectorClock &clock, const VectorClock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size());
  for (size_t lane = 0; lane < other.size(); ++lane)
    clock[lane] = std::max(clock[lane], other[lane]);
}

void OrderChecker::noteAccesses() {
  int64_t runs = 1;
  uint32_t left = 0;
  for (const Command &command : program.commands) {
    accesses.push_back(accessesOf(plan, program, command, runs));
    if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
      runs = loop->runs;
      left = loop->commands;
    } else if (left > 0 && --left == 0) {
      runs = 1;
    }
    report.events += command.after.size();
    if (isCommunication(command))
      ++report.commands[static_cast<int>(Stream::Communication)];
    else if (!accesses.back().empty())
      ++report.commands[static_cast<int>(command.stream)];
  }
}

/// On a CPU a collective or a transfer has a lane to itself until its wait.
size_t OrderChecker::chooseLane(const Command &command) {
  if (!plan.gpuTarget.empty() || !isCommunication(command))
    return static_cast<size_t>(command.stream);
  size_t lane = numStreams;
  while (lane < lanes.size() && lanes[lane].isUnderWay)
    ++lane;
  if (lane == lanes.size())
    lanes.emplace_back();
  lanes[lane].isUnderWay = true;
  return lane;
}

std::string OrderChecker::describeCommand(uint32_t number) const {
  const Command &command = program.commands[number];
  std::string text = absl::StrCat("command ", number, " (", nameOf(command));
  if (!plan.gpuTarget.empty())
    absl::StrAppend(&text, " on stream ", toString(command.stream));
  if (!command.source.empty())
    absl::StrAppend(&text, ", ", command.source);
  return text + ")";
}

/// Fails if two commands that may run at the same time touch the same bytes and
/// one of them writes.
absl::Status OrderChecker::compare(uint32_t earlier, uint32_t later) const {
  for (const Access &a : accesses[earlier])
    for (const Access &b : accesses[later]) {
      if (!overlap(a.bytes, b.bytes) || (!a.isWrite && !b.isWrite))
        continue;
      ByteRange bytes = intersection(a.bytes, b.bytes);
      auto verb = [](const Access &access) {
        return access.isWrite ? " writes " : " reads ";
      };
      return absl::DataLossError(
          absl::StrCat("program \"", program.name, "\": nothing orders ",
                       describeCommand(later), ", which", verb(b), "bytes ",
                       bytes.begin, " to ", bytes.end, " of the arena in ",
                       describe(plan, b), ", after ", describeCommand(earlier),
                       ", which", verb(a), "them in ", describe(plan, a)));
    }
  return absl::OkStatus();
}

absl::Status OrderChecker::issue(uint32_t number) {
  const Command &command = program.commands[number];
  size_t lane = chooseLane(command);
  VectorClock clock = lanes[lane].clock;
  for (uint32_t other : command.after)
    join(clock, latest[other]);
  // On a CPU all earlier commands have been issued.
  if (lane >= numStreams)
    join(clock, lanes[0].clock);
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation)) {
    join(clock, latest[wait->start]);
    for (Lane &ended : lanes)
      if (ended.isUnderWay && ended.issued.back() == wait->start)
        ended.isUnderWay = false;
  }
  clock.resize(lanes.size());
  for (size_t other = 0; other < lanes.size(); ++other)
    for (size_t i = clock[other]; i < lanes[other].issued.size(); ++i) {
      ++report.concurrentPairs;
      if (absl::Status s = compare(lanes[other].issued[i], number); !s.ok())
        return s;
    }
  lanes[lane].issued.push_back(number);
  clock[lane] = lanes[lane].issued.size();
  lanes[lane].clock = clock;
  latest[number] = std::move(clock);
  return absl::OkStatus();
}

absl::StatusOr<OrderReport> OrderChecker::run() {
  noteAccesses();
  for (uint32_t number = 0; number < program.commands.size(); ++number) {
    if (absl::Status s = issue(number); !s.ok())
      return s;
    auto *loop = std::get_if<LoopCommand>(&program.commands[number].operation);
    if (!loop || loop->runs < 2)
      continue;
    // Checks the first run here, the second with the commands that follow.
    for (uint32_t i = number + 1; i <= number + loop->commands; ++i)
      if (absl::Status s = issue(i); !s.ok())
        return s;
  }
  return report;
}

absl::StatusOr<OrderReport>
shardc::rt::checkHappensBefore(const PlanSpec &plan,
                               const ProgramSpec &program) {
  return OrderChecker(plan, program).run();
}
