//===- RemoteMessagesTest.cpp - Messages between processes end ------------===//
//
// What each of several processes makes of an order: commands that compute stay
// where they are, each message to another process is started before its end and
// waited for behind it, each collective of a rank is started and then waited
// for, at the same place in all processes, and processes that wait for each
// other's starts all come to the end.
//
//===----------------------------------------------------------------------===//

#include "TestPlan.h"

#include "exec/RemoteMessages.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <optional>
#include <set>

using namespace shardc::rt;
using test::makePipelinePlan;

namespace {

/// That of one of several processes; nothing is sent.
class NoTransport : public Transport {
public:
  using Transport::Transport;

private:
  absl::StatusOr<Exchange> begin(absl::Span<const Message>, uint32_t) override {
    return nullptr;
  }
  absl::Status end(Exchange) override { return absl::OkStatus(); }
  void advance() override {}
};

/// A start of a message by a pipeline rank.
using Start = std::pair<int, uint32_t>;

/// What a process does of interest.
struct Event {
  bool isWait;
  Start start;
};

/// Goes through the orders of all processes.
class ExchangingProcesses {
public:
  ExchangingProcesses(const PlanSpec &plan, size_t program, int size);

  void check() const;
  /// Each process goes on until a wait for a start that has not been. The
  /// number of processes that come to their ends.
  int run() const;

private:
  const Command &commandAt(RankCommand place) const {
    return plan.ranks()[place.rank].programs[program].commands[place.command];
  }
  /// The start of a message that a command is, or waits for; none: something
  /// else.
  std::optional<Event> eventOf(RankCommand place) const;
  /// As above, of a collective of one rank.
  std::optional<Event> collectiveOf(const PipelineStep &step) const;
  void checkCollectives(const PipelineOrder &own) const;
  /// The starts of the other end of a message.
  Start peerOf(const Start &start) const { return peers.at(start); }

  const PlanSpec &plan;
  size_t program;
  PipelineOrder order;
  std::vector<PipelineOrder> orders; ///< By process.
  std::map<Start, Start> peers;
};

} // namespace

static bool isSameStep(const PipelineStep &one, const PipelineStep &other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](RankCommand a, RankCommand b) {
                      return a.rank == b.rank && a.command == b.command;
                    });
}

ExchangingProcesses::ExchangingProcesses(const PlanSpec &plan, size_t program,
                                         int size)
    : plan(plan), program(program),
      order(orderPipeline(plan, program)->inSequence()) {
  for (int rank = 0; rank < size; ++rank) {
    NoTransport transport(rank, size);
    orders.push_back(addRemoteSteps(plan, program, order,
                                    DeviceProcesses(plan, &transport)));
  }
  for (const PipelineStep &step : order.steps)
    for (size_t i = 0; i + 1 < step.size(); i += 2)
      if (eventOf(step[i]) && eventOf(step[i + 1])) {
        Start send{step[i].rank, step[i].command};
        Start receive{step[i + 1].rank, step[i + 1].command};
        peers[send] = receive;
        peers[receive] = send;
      }
}

std::optional<Event> ExchangingProcesses::eventOf(RankCommand place) const {
  const Command *command = &commandAt(place);
  uint32_t start = place.command;
  auto *wait = std::get_if<CollectiveWaitCommand>(&command->operation);
  if (wait)
    command = &commandAt({place.rank, start = wait->start});
  if (!std::holds_alternative<SendCommand>(command->operation) &&
      !std::holds_alternative<ReceiveCommand>(command->operation))
    return std::nullopt;
  return Event{wait != nullptr, {place.rank, start}};
}

std::optional<Event>
ExchangingProcesses::collectiveOf(const PipelineStep &step) const {
  const auto [rank, command] = step[0];
  auto *wait =
      std::get_if<CollectiveWaitCommand>(&commandAt(step[0]).operation);
  uint32_t start = wait ? wait->start : command;
  auto *collective =
      std::get_if<CollectiveStartCommand>(&commandAt({rank, start}).operation);
  if (!collective || plan.ranks()[rank].isOverRanks(*collective))
    return std::nullopt;
  return Event{wait != nullptr, {rank, start}};
}

void ExchangingProcesses::checkCollectives(const PipelineOrder &own) const {
  // By start its steps so far. Steps of messages that this process alone has
  // make no difference.
  std::map<Start, int> steps;
  auto sequenceOf = [&](const PipelineOrder &one) {
    std::vector<std::pair<int, uint32_t>> sequence;
    for (const PipelineStep &step : one.steps)
      if (!eventOf(step[0]) || step.size() > 1)
        sequence.push_back({step[0].rank, step[0].command});
    return sequence;
  };
  for (const PipelineStep &step : own.steps)
    if (auto event = collectiveOf(step)) {
      EXPECT_EQ(steps[event->start]++, event->isWait ? 1 : 0);
    }
  size_t collectives = 0;
  for (const PipelineStep &step : order.steps)
    if (auto event = collectiveOf(step)) {
      EXPECT_EQ(steps[event->start], 2);
      ++collectives;
    }
  EXPECT_EQ(steps.size(), collectives);
  EXPECT_TRUE(sequenceOf(own) == sequenceOf(orders[0]));
}

void ExchangingProcesses::check() const {
  std::vector<PipelineStep> others;
  for (const PipelineStep &step : order.steps)
    if (!collectiveOf(step))
      others.push_back(step);
  for (const PipelineOrder &own : orders) {
    checkCollectives(own);
    size_t next = 0;
    std::map<Start, int> starts, waits;
    for (const PipelineStep &step : own.steps) {
      if (collectiveOf(step))
        continue;
      if (next < others.size() && isSameStep(step, others[next])) {
        // Between the start and the wait, of messages that have them.
        for (RankCommand place : step)
          if (auto event = eventOf(place)) {
            EXPECT_EQ(waits[event->start], 0);
            if (starts[event->start] == 0)
              waits[event->start] = -1; // It stays in this process.
          }
        ++next;
        continue;
      }
      ASSERT_EQ(step.size(), 1u);
      std::optional<Event> event = eventOf(step[0]);
      ASSERT_TRUE(event);
      EXPECT_EQ(++(event->isWait ? waits : starts)[event->start], 1);
    }
    EXPECT_EQ(next, others.size());
    for (const auto &[start, count] : starts)
      EXPECT_EQ(waits[start], count ? 1 : -1);
    std::vector<int64_t> rounds(own.steps.size());
    std::iota(rounds.begin(), rounds.end(), 0);
    EXPECT_EQ(own.rounds, rounds);
  }
}

int ExchangingProcesses::run() const {
  // By process; the processes that have each start at all, and those where it
  // has been.
  std::vector<std::vector<Event>> events(orders.size());
  std::map<Start, std::set<size_t>> all, done;
  for (size_t process = 0; process < orders.size(); ++process)
    for (const PipelineStep &step : orders[process].steps)
      if (auto event = eventOf(step[0]); event && step.size() == 1) {
        events[process].push_back(*event);
        if (!event->isWait)
          all[event->start].insert(process);
      }
  std::vector<size_t> at(orders.size());
  for (bool goesOn = true; goesOn;) {
    goesOn = false;
    for (size_t process = 0; process < orders.size(); ++process)
      while (at[process] < events[process].size()) {
        const Event &event = events[process][at[process]];
        const Start peer = peerOf(event.start);
        if (event.isWait && done[peer] != all[peer])
          break;
        if (!event.isWait)
          done[event.start].insert(process);
        ++at[process];
        goesOn = true;
      }
  }
  int ended = 0;
  for (size_t process = 0; process < orders.size(); ++process)
    ended += at[process] == events[process].size();
  return ended;
}

TEST(RemoteMessagesTest, EveryMessageStartsBeforeItsEndAndIsWaitedFor) {
  for (int ranks : {1, 2, 3, 4})
    for (int microbatches : {1, 3, 8}) {
      auto plan = Plan::parse(makePipelinePlan(ranks, microbatches));
      ASSERT_TRUE(plan.ok()) << plan.status();
      for (size_t program : {0, 1})
        for (int size : {2, 3, 4, 5}) {
          if (size > (*plan)->numDevices())
            continue;
          SCOPED_TRACE(absl::StrCat(ranks, " ranks, ", microbatches,
                                    " microbatches, program ", program, ", ",
                                    size, " processes"));
          ExchangingProcesses processes((*plan)->spec(), program, size);
          processes.check();
          EXPECT_EQ(processes.run(), size);
        }
    }
}

/// Where a process has all devices of neighbouring ranks no message is added.
TEST(RemoteMessagesTest, OneProcessHasNone) {
  auto plan = Plan::parse(makePipelinePlan(3, 4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanSpec &spec = (*plan)->spec();
  PipelineOrder order = orderPipeline(spec, 0)->inSequence();
  auto numMessages = [&](const PipelineOrder &one) {
    return absl::c_count_if(one.steps, [&](const PipelineStep &step) {
      const ProgramSpec &program = spec.ranks()[step[0].rank].programs[0];
      auto &operation = program.commands[step[0].command].operation;
      return std::holds_alternative<SendCommand>(operation) ||
             std::holds_alternative<ReceiveCommand>(operation);
    });
  };
  EXPECT_EQ(numMessages(
                addRemoteSteps(spec, 0, order, DeviceProcesses(spec, nullptr))),
            numMessages(order));
}
