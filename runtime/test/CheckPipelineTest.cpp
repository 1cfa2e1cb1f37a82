//===- CheckPipelineTest.cpp - Plans with a pipeline are verified ---------===//

#include "TestPlan.h"

#include "plan/Accesses.h"
#include "plan/CheckPipeline.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

using namespace shardc::rt;
using test::makePipelinePlan;

namespace {

class SoundPipelineTest : public testing::TestWithParam<std::tuple<int, int>> {
};

/// Every command but waits, and each before those behind it on its rank;
/// communication before its wait.
void checkSteps(const PlanSpec &spec, size_t program,
                const std::vector<PipelineStep> &steps) {
  std::vector<std::set<uint32_t>> done(spec.ranks().size());
  for (const PipelineStep &step : steps)
    for (RankCommand place : step) {
      const ProgramSpec &of = spec.ranks()[place.rank].programs[program];
      EXPECT_TRUE(done[place.rank].insert(place.command).second);
      if (isCommunication(of.commands[place.command]))
        continue;
      for (uint32_t i = 0; i < place.command; ++i) {
        auto *wait =
            std::get_if<CollectiveWaitCommand>(&of.commands[i].operation);
        if (wait || !isCommunication(of.commands[i])) {
          EXPECT_TRUE(done[place.rank].count(wait ? wait->start : i));
        }
      }
    }
  for (size_t rank = 0; rank < done.size(); ++rank) {
    int64_t waits = 0;
    const ProgramSpec &of = spec.ranks()[rank].programs[program];
    for (const Command &command : of.commands)
      waits += std::holds_alternative<CollectiveWaitCommand>(command.operation);
    EXPECT_EQ(done[rank].size() + waits, of.commands.size());
  }
}

/// How often a kernel of another task comes before the last one of a task.
int countTasksLeft(const PlanSpec &spec, size_t program,
                   const std::vector<PipelineStep> &steps) {
  int left = 0;
  std::pair<int, int32_t> current{-1, -1};
  std::set<std::pair<int, int32_t>> begun;
  for (const PipelineStep &step : steps) {
    const Command &command =
        spec.ranks()[step[0].rank].programs[program].commands[step[0].command];
    if (command.task < 0 || isCommunication(command))
      continue;
    std::pair<int, int32_t> task{step[0].rank, command.task};
    left += task != current && !begun.insert(task).second;
    current = task;
  }
  return left;
}

TEST_P(SoundPipelineTest, HasAnOrderOfAllCommands) {
  auto [ranks, microbatches] = GetParam();
  auto plan = Plan::parse(makePipelinePlan(ranks, microbatches));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanSpec &spec = (*plan)->spec();
  ASSERT_EQ(spec.ranks().size(), size_t(ranks));
  EXPECT_EQ((*plan)->numDevices(), 4 * ranks);
  for (size_t program = 0; program < 2; ++program) {
    auto order = orderPipeline(spec, program);
    ASSERT_TRUE(order.ok()) << order.status();
    int64_t passes = program == 0 ? 2 : 1;
    EXPECT_EQ(order->messages, passes * microbatches * (ranks - 1));
    EXPECT_EQ(order->jointCollectives, program == 0);
    // (M+S-1)(F+B) with F = 1 and B = 2.
    EXPECT_EQ(order->seconds,
              (microbatches + ranks - 1) * (program == 0 ? 3 : 1));
    checkSteps(spec, program, order->steps);
    PipelineOrder sequence = order->inSequence();
    checkSteps(spec, program, sequence.steps);
    std::vector<int64_t> rounds(sequence.steps.size());
    std::iota(rounds.begin(), rounds.end(), 0);
    EXPECT_EQ(sequence.rounds, rounds);
    EXPECT_EQ(countTasksLeft(spec, program, sequence.steps), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SoundPipelineTest,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(1, 2, 3, 8)));

/// Durations on one clock per rank. The ranks run F0 F1 B0 B1 and F0 B0 F1 B1;
/// messages 0 and 1 are those of F, 2 and 3 those of B.
TEST(CheckPipelineTest, ReplaysDurations) {
  auto plan = Plan::parse(makePipelinePlan(2, 2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanSpec &spec = (*plan)->spec();
  PipelineTimes times = estimatedTimes(spec, 0);
  EXPECT_EQ(times.tasks,
            (std::vector<std::vector<double>>{{1, 1, 2, 2}, {1, 2, 1, 2}}));
  EXPECT_EQ(times.messages, std::vector<double>(4));
  auto replay = [&](PipelineTimes times) {
    auto order = orderPipeline(spec, 0, times);
    EXPECT_TRUE(order.ok()) << order.status();
    return std::make_pair(order->seconds, order->bubble);
  };
  EXPECT_EQ(replay(times), std::make_pair(9.0, 1 - 12.0 / 18));
  // Rank 1 runs from 1 to 15, and rank 0 its last task behind that.
  times.tasks = {{1, 1, 2, 2}, {3, 4, 3, 4}};
  EXPECT_EQ(replay(times), std::make_pair(17.0, 1 - 20.0 / 34));
  // Rank 1 receives the second microbatch when it has sent the first gradient,
  // and waits for it from 8.5 to 9.
  times.messages = {0.5, 0.5, 0.5, 0.5};
  EXPECT_EQ(replay(times), std::make_pair(18.5, 1 - 20.0 / 37));
  // Rank 0 is slow, and rank 1 waits for it.
  times = {{{5, 5, 1, 1}, {1, 1, 1, 1}}, {0, 0, 0, 0}};
  EXPECT_EQ(replay(times), std::make_pair(13.0, 1 - 16.0 / 26));
  times = {{{0, 0, 0, 0}, {0, 0, 0, 0}}, {0, 0, 0, 0}};
  EXPECT_EQ(replay(times), std::make_pair(0.0, 0.0));
}

/// Transfers take the time that their lines in the report have, if a task makes
/// what they carry.
TEST(CheckPipelineTest, EstimatesMessages) {
  auto plan = Plan::parse(makePipelinePlan(2, 1, [](fb::PlanT &plan) {
    for (auto &program : plan.programs) {
      auto line = std::make_unique<fb::CollectiveReportT>();
      line->kind = fb::CollectiveKind::Send;
      line->seconds = program->rank == 0 ? 0.5 : 0.25;
      program->collectives.push_back(std::move(line));
    }
  }));
  ASSERT_TRUE(plan.ok()) << plan.status();
  PipelineTimes times = estimatedTimes((*plan)->spec(), 0);
  EXPECT_EQ(times.messages, (std::vector<double>{0.5, 0.25}));
  auto order = orderPipeline((*plan)->spec(), 0);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->seconds, 1 + 0.5 + 1 + 2 + 0.25 + 2);
}

TEST(CheckPipelineTest, RanksHaveTheirOwnPlaces) {
  auto plan = Plan::parse(makePipelinePlan(3, 2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::Span<const PlanSpec> ranks = (*plan)->spec().ranks();
  EXPECT_EQ(ranks[0].findTensor("w1"), nullptr);
  EXPECT_EQ(ranks[2].findTensor("x"), nullptr);
  ASSERT_NE(ranks[1].findTensor("w1"), nullptr);
  EXPECT_EQ(ranks[1].findTensor("w1")->offset, 64u);
  EXPECT_EQ(ranks[2].findTensor("w2")->offset, 128u);
  EXPECT_EQ(ranks[1].mesh.toString(), "stage=1,data=2,copy=2");
  uint64_t greatest = 0;
  for (const PlanSpec &rank : ranks)
    greatest = std::max(greatest, rank.arenaBytes);
  EXPECT_EQ((*plan)->arenaBytes(), greatest);
  EXPECT_NE(ranks[0].arenaBytes, ranks[2].arenaBytes);
  EXPECT_EQ((*plan)->spec().deviceOf(2, 3), 11);
  ASSERT_EQ((*plan)->programs().size(), 2u);
  EXPECT_EQ((*plan)->programs()[0].results.size(), 1u);
}

/// What is done to a pipeline of three ranks and two microbatches, and the
/// beginning or middle of the error.
struct Fault {
  const char *error;
  void (*edit)(fb::PlanT &);
};

class FaultTest : public testing::TestWithParam<Fault> {};

TEST_P(FaultTest, IsAnError) {
  absl::Status status =
      Plan::parse(makePipelinePlan(3, 2, GetParam().edit)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(GetParam().error), absl::string_view::npos)
      << status;
}

/// The step of a rank.
fb::ProgramT &step(fb::PlanT &p, int rank) { return *p.programs[rank]; }

template <typename T>
T *as(fb::CommandT &command);
template <>
fb::SendT *as(fb::CommandT &command) {
  return command.operation.AsSend();
}
template <>
fb::ReceiveT *as(fb::CommandT &command) {
  return command.operation.AsReceive();
}
template <>
fb::LaunchT *as(fb::CommandT &command) {
  return command.operation.AsLaunch();
}
template <>
fb::CollectiveStartT *as(fb::CommandT &command) {
  return command.operation.AsCollectiveStart();
}

/// The number of the k-th such command of a program.
template <typename T>
size_t numberOf(fb::ProgramT &program, int k) {
  for (size_t i = 0;; ++i)
    if (as<T>(*program.commands.at(i)) && k-- == 0)
      return i;
}
template <typename T>
T &find(fb::ProgramT &program, int k) {
  return *as<T>(*program.commands[numberOf<T>(program, k)]);
}

fb::SendT &send(fb::PlanT &p, int rank, int k) {
  return find<fb::SendT>(step(p, rank), k);
}
fb::ReceiveT &receive(fb::PlanT &p, int rank, int k) {
  return find<fb::ReceiveT>(step(p, rank), k);
}
/// The all-reduce over stage and data.
fb::CollectiveStartT &joint(fb::PlanT &p, int rank) {
  return find<fb::CollectiveStartT>(step(p, rank), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Messages, FaultTest,
    testing::Values(
        Fault{"pipeline rank 0 (send of message 0, task 0F1) and command 4 of "
              "pipeline rank 1 (receive of message 1, task 1F0) wait for each",
              [](fb::PlanT &p) {
                std::swap(send(p, 0, 0).message, send(p, 0, 1).message);
              }},
        Fault{"(send of message 0, task 0F0) has no receive",
              [](fb::PlanT &p) { receive(p, 1, 0).message = 1; }},
        Fault{"(receive of message 99, task 1F0) has no send",
              [](fb::PlanT &p) { receive(p, 1, 0).message = 99; }},
        Fault{"message 0 is missing before command",
              [](fb::PlanT &p) {
                send(p, 0, 0).message = receive(p, 1, 0).message = 99;
              }},
        Fault{"(send of message 1, task 0F1) is the second one",
              [](fb::PlanT &p) {
                send(p, 0, 0).message = receive(p, 1, 0).message = 1;
                p.programs[0]->commands.push_back(
                    std::move(p.programs[0]->commands.back()));
                p.programs[0]->commands.erase(p.programs[0]->commands.end() -
                                              2);
                // Message 0 is another one now.
                send(p, 1, 0).message = receive(p, 2, 0).message = 0;
              }},
        Fault{"goes to rank 2, but command",
              [](fb::PlanT &p) { send(p, 0, 0).peer = 2; }},
        Fault{"comes from rank 2, but command",
              [](fb::PlanT &p) { receive(p, 1, 0).peer = 2; }},
        Fault{"has 2 buffers and command",
              [](fb::PlanT &p) {
                send(p, 0, 0).buffers.push_back(
                    find<fb::LaunchT>(step(p, 0), 0).buffers[0]);
              }},
        Fault{"is 8 bytes of f32 and that of command",
              [](fb::PlanT &p) {
                fb::BufferT &buffer =
                    *step(p, 1).buffers[receive(p, 1, 0).buffers[0]];
                buffer.shape = {1}, buffer.bytes = 4;
              }},
        Fault{"4 of i32",
              [](fb::PlanT &p) {
                fb::BufferT &buffer =
                    *step(p, 1).buffers[receive(p, 1, 0).buffers[0]];
                buffer.shape = {1}, buffer.bytes = 4;
                buffer.dtype = fb::DType::I32;
              }},
        Fault{"line 7 of a communication report that has 1",
              [](fb::PlanT &p) {
                auto line = std::make_unique<fb::CollectiveReportT>();
                line->kind = fb::CollectiveKind::Send;
                step(p, 0).collectives.push_back(std::move(line));
                send(p, 0, 0).report = 7;
              }},
        Fault{"a transfer of no buffers",
              [](fb::PlanT &p) { send(p, 0, 0).buffers.clear(); }},
        Fault{"buffer 99 of",
              [](fb::PlanT &p) { send(p, 0, 0).buffers = {99}; }},
        Fault{"the result of tensor 0 overlaps tensor 1", [](fb::PlanT &p) {
                receive(p, 1, 0).buffers.push_back(receive(p, 1, 0).buffers[0]);
              }}));

/// Moves a command of a program to a later place.
void move(fb::ProgramT &program, size_t from, size_t to) {
  auto &commands = program.commands;
  for (auto &command : commands)
    if (fb::CollectiveWaitT *wait = command->operation.AsCollectiveWait())
      wait->start = wait->start == from                       ? to
                    : wait->start > from && wait->start <= to ? wait->start - 1
                                                              : wait->start;
  std::rotate(commands.begin() + from, commands.begin() + from + 1,
              commands.begin() + to + 1);
}

INSTANTIATE_TEST_SUITE_P(
    Order, FaultTest,
    testing::Values(
        // Rank 0 sends the second microbatch when it has the first gradient,
        // which rank 1 sends when it has the second microbatch.
        Fault{"wait for each other",
              [](fb::PlanT &p) {
                fb::ProgramT &program = step(p, 0);
                size_t from = numberOf<fb::SendT>(program, 1);
                size_t to = numberOf<fb::ReceiveT>(program, 0) + 1;
                move(program, from, to);
              }},
        // The kernel of the second microbatch writes what is being sent.
        Fault{"pipeline rank 0: program \"train_step\": nothing orders command",
              [](fb::PlanT &p) {
                find<fb::LaunchT>(step(p, 0), 1).buffers[2] =
                    find<fb::LaunchT>(step(p, 0), 0).buffers[2];
              }},
        // The kernel reads the message before it waits for it.
        Fault{"(receive, ",
              [](fb::PlanT &p) {
                fb::ProgramT &program = step(p, 1);
                program.commands[numberOf<fb::ReceiveT>(program, 0)]->source =
                    "m.mlir:1:2";
                size_t kernel = numberOf<fb::LaunchT>(program, 0);
                move(program, kernel - 1, kernel);
              }},
        Fault{"starts communication that is never waited for",
              [](fb::PlanT &p) {
                auto &commands = step(p, 1).commands;
                for (size_t i = 0; i < commands.size(); ++i)
                  if (auto *wait = commands[i]->operation.AsCollectiveWait())
                    if (wait->start == numberOf<fb::SendT>(step(p, 1), 0)) {
                      fb::ClearT clear;
                      clear.buffer = 3;
                      commands[i]->operation.Set(clear);
                    }
              }},
        Fault{"differs from command",
              [](fb::PlanT &p) { joint(p, 1).axes = {0}; }},
        Fault{"differs from command",
              [](fb::PlanT &p) { joint(p, 1).reduction = fb::Reduction::Max; }},
        Fault{"pipeline rank 1 has 0 collectives over the axis of the pipeline "
              "and rank 0 1",
              [](fb::PlanT &p) { joint(p, 1).axes = {1}; }},
        Fault{"all_gather over the axis of the pipeline",
              [](fb::PlanT &p) {
                joint(p, 1).kind = fb::CollectiveKind::AllGather;
              }},
        Fault{"a loop in a plan with a pipeline",
              [](fb::PlanT &p) { test::addLoop(p, 0, /*runs=*/2); }}));

INSTANTIATE_TEST_SUITE_P(
    Tables, FaultTest,
    testing::Values(
        Fault{"version 5 with a pipeline", [](fb::PlanT &p) { p.version = 5; }},
        Fault{"version 6 without a pipeline",
              [](fb::PlanT &p) { p.pipeline = nullptr; }},
        Fault{"the pipeline is over axis 3 of 3",
              [](fb::PlanT &p) { p.pipeline->axis = 3; }},
        Fault{"a pipeline of 3 ranks over axis \"data\" of size 2",
              [](fb::PlanT &p) { p.pipeline->axis = 1; }},
        Fault{"a pipeline of 0 microbatches",
              [](fb::PlanT &p) { p.pipeline->microbatches = 0; }},
        Fault{"stage 1 is on pipeline rank 3 of 3",
              [](fb::PlanT &p) { p.pipeline->stages[1] = 3; }},
        Fault{"but the greatest of the pipeline ranks has",
              [](fb::PlanT &p) { p.arena_bytes += 64; }},
        Fault{"tensor \"w0\" needs places",
              [](fb::PlanT &p) { p.tensors[1]->places.clear(); }},
        Fault{"tensor \"w0\" is on pipeline rank 3 of 3",
              [](fb::PlanT &p) { p.tensors[1]->places[0]->rank = 3; }},
        Fault{"pipeline rank 0: tensor \"w0\" lies at byte 4, not aligned",
              [](fb::PlanT &p) { p.tensors[1]->places[0]->offset = 4; }},
        Fault{"of an arena of",
              [](fb::PlanT &p) { p.tensors[1]->places[0]->offset = 1 << 20; }},
        Fault{"parameter \"w0\" is on 2 pipeline ranks, expected one",
              [](fb::PlanT &p) {
                auto place = std::make_unique<fb::TensorPlaceT>();
                place->rank = 1;
                p.tensors[1]->places.push_back(std::move(place));
              }},
        Fault{"state \"t\" is on 3 pipeline ranks, expected the one of its",
              [](fb::PlanT &p) { p.tensors.back()->parameter = "w0"; }},
        Fault{"is sharded over the axis of the pipeline",
              [](fb::PlanT &p) {
                p.tensors[0]->sharding->dims[0]->axes = {0};
                p.tensors[0]->shape = {96};
              }},
        Fault{"program \"train_step\" is of pipeline rank -1 of 3",
              [](fb::PlanT &p) { p.programs[0]->rank = -1; }},
        Fault{"pipeline rank 1: two programs are named",
              [](fb::PlanT &p) { p.programs[4]->name = "train_step"; }},
        Fault{"pipeline rank 2 has other programs than rank 0",
              [](fb::PlanT &p) { p.programs.pop_back(); }},
        Fault{"has results on 2 pipeline ranks",
              [](fb::PlanT &p) {
                auto result =
                    std::make_unique<fb::ResultT>(*p.programs[2]->results[0]);
                result->buffer = 0;
                p.programs[1]->results.push_back(std::move(result));
              }},
        Fault{"task 1F0 on pipeline rank 0, which has no such stage",
              [](fb::PlanT &p) { p.programs[0]->tasks[0]->stage = 1; }},
        Fault{"task 0F7 on pipeline rank 0, which has no such stage",
              [](fb::PlanT &p) { p.programs[0]->tasks[0]->microbatch = 7; }},
        Fault{"task 0F0 is there twice",
              [](fb::PlanT &p) { p.programs[0]->tasks[1]->microbatch = 0; }},
        Fault{"stage 0, microbatch 1 has not its tasks: F, and B or I and W",
              [](fb::PlanT &p) {
                p.programs[0]->tasks[3]->kind = fb::TaskKind::InputGradient;
              }},
        Fault{"stage 0, microbatch 0 has not its tasks: F alone",
              [](fb::PlanT &p) {
                p.programs[3]->tasks[0]->kind = fb::TaskKind::Backward;
              }},
        Fault{"seconds",
              [](fb::PlanT &p) { p.programs[0]->tasks[0]->seconds = -1; }},
        Fault{"a line of the communication report takes nan seconds",
              [](fb::PlanT &p) {
                auto line = std::make_unique<fb::CollectiveReportT>();
                line->seconds = NAN;
                p.programs[0]->collectives.push_back(std::move(line));
              }},
        Fault{"task 9 of 4",
              [](fb::PlanT &p) {
                p.programs[0]
                    ->commands[numberOf<fb::LaunchT>(step(p, 0), 0)]
                    ->task = 9;
              }},
        Fault{"belongs to task 1 after one of task 3", [](fb::PlanT &p) {
                p.programs[0]
                    ->commands[numberOf<fb::LaunchT>(step(p, 0), 0)]
                    ->task = 3;
              }}));

TEST(CheckPipelineTest, TransfersNeedAPipeline) {
  absl::Status status = Plan::parse(test::makePlan(2, [](fb::PlanT &p) {
                          fb::SendT send;
                          send.buffers = {0};
                          p.programs[0]->commands[0]->operation.Set(send);
                        })).status();
  EXPECT_NE(status.message().find("command 0: a transfer between ranks in a "
                                  "plan without a pipeline"),
            absl::string_view::npos)
      << status;
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

TEST_P(SoundPipelineTest, HasAnOrderOfStreams) {
  auto [ranks, microbatches] = GetParam();
  auto plan = Plan::parse(makePipelinePlan(ranks, microbatches, test::onGpus));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanSpec &spec = (*plan)->spec();
  for (size_t program = 0; program < 2; ++program) {
    auto order = orderPipeline(spec, program);
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_EQ(order->messages,
              (program == 0 ? 2 : 1) * microbatches * (ranks - 1));
    EXPECT_EQ(order->seconds,
              (microbatches + ranks - 1) * (program == 0 ? 3 : 1));
    // Every command once, behind those of its stream and those it comes after.
    std::vector<std::set<uint32_t>> done(ranks);
    for (const PipelineStep &step : order->steps) {
      for (RankCommand place : step) {
        const ProgramSpec &of = spec.ranks()[place.rank].programs[program];
        const Command &command = of.commands[place.command];
        for (uint32_t other : command.after)
          EXPECT_TRUE(done[place.rank].count(other));
        for (uint32_t i = 0; i < place.command; ++i)
          EXPECT_TRUE(of.commands[i].stream != command.stream ||
                      done[place.rank].count(i) || step.size() == 4);
      }
      for (RankCommand place : step)
        EXPECT_TRUE(done[place.rank].insert(place.command).second);
    }
    for (int rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(done[rank].size(),
                spec.ranks()[rank].programs[program].commands.size());
  }
}

/// Two further messages behind all commands of the step: from rank 0 to rank 1
/// and back.
void addOpposite(fb::PlanT &p) {
  test::onGpus(p);
  uint32_t number = 0;
  for (auto &command : step(p, 1).commands)
    number += as<fb::SendT>(*command) || as<fb::ReceiveT>(*command);
  for (int rank : {0, 1}) {
    fb::ProgramT &program = step(p, rank);
    uint32_t last = 0;
    for (uint32_t i = 0; i < program.commands.size(); ++i)
      if (as<fb::LaunchT>(*program.commands[i]))
        last = i;
    // The operands of the first kernel, of two rows, and a further buffer.
    fb::LaunchT &launch = find<fb::LaunchT>(program, 0);
    uint32_t more = program.buffers.size();
    program.buffers.push_back(
        std::make_unique<fb::BufferT>(*program.buffers[launch.buffers[2]]));
    program.buffers.back()->offset = p.pipeline->ranks[rank]->arena_bytes;
    p.pipeline->ranks[rank]->arena_bytes += 64;
    p.arena_bytes =
        std::max(p.arena_bytes, p.pipeline->ranks[rank]->arena_bytes);
    for (int message : {0, 1}) {
      auto command = std::make_unique<fb::CommandT>();
      command->stream = fb::Stream::Communication;
      command->after = {last};
      auto fill = [&](auto transfer, uint32_t buffer) {
        transfer.buffers = {buffer};
        transfer.peer = 1 - rank;
        transfer.message = number + message;
        command->operation.Set(std::move(transfer));
      };
      if (message == rank)
        fill(fb::SendT(), launch.buffers[2]);
      else
        fill(fb::ReceiveT(), more);
      program.commands.push_back(std::move(command));
    }
  }
}

/// Of the step of two ranks and one microbatch.
int64_t countPairs(const std::function<void(fb::PlanT &)> &edit) {
  auto plan = Plan::parse(makePipelinePlan(2, 1, edit));
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok())
    return -1;
  auto order = orderPipeline((*plan)->spec(), 0);
  EXPECT_TRUE(order.ok()) << order.status();
  int64_t together = 0;
  for (const PipelineStep &commands : order->steps)
    together += commands.size() == 4;
  EXPECT_EQ(order->messagePairs, together);
  return together;
}

TEST(CheckPipelineTest, OppositeNeighboursCrossTogether) {
  EXPECT_EQ(countPairs(test::onGpus), 0);
  EXPECT_EQ(countPairs(addOpposite), 1);
  // On a rank it sends back the bytes that it receives.
  EXPECT_EQ(countPairs([](fb::PlanT &p) {
              addOpposite(p);
              auto &commands = step(p, 1).commands;
              commands.back()->operation.AsSend()->buffers =
                  commands[commands.size() - 2]->operation.AsReceive()->buffers;
            }),
            0);
  // The second one comes after a command between them.
  EXPECT_EQ(
      countPairs([](fb::PlanT &p) {
        addOpposite(p);
        fb::ProgramT &program = step(p, 1);
        auto clear = std::make_unique<fb::CommandT>();
        fb::ClearT zeros;
        zeros.buffer = program.commands.back()->operation.AsSend()->buffers[0];
        clear->operation.Set(zeros);
        uint32_t place = program.commands.size() - 1;
        program.commands.insert(program.commands.end() - 1, std::move(clear));
        program.commands.back()->after = {place};
      }),
      0);
}

class GpuFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(GpuFaultTest, IsAnError) {
  absl::Status status = Plan::parse(makePipelinePlan(3, 2, [](fb::PlanT &p) {
                          test::onGpus(p);
                          GetParam().edit(p);
                        })).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(GetParam().error), absl::string_view::npos)
      << status;
}

fb::UploadT &upload(fb::PlanT &p) {
  return *step(p, 0).commands[0]->operation.AsUpload();
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuFaultTest,
    testing::Values(
        Fault{"wait for each other",
              [](fb::PlanT &p) {
                std::swap(send(p, 0, 0).message, send(p, 0, 1).message);
              }},
        Fault{"program \"train_step\": nothing orders command",
              [](fb::PlanT &p) {
                step(p, 0)
                    .commands[numberOf<fb::SendT>(step(p, 0), 0)]
                    ->after.clear();
              }},
        Fault{
            "send on stream compute, expected communication",
            [](fb::PlanT &p) {
              step(p, 0).commands[numberOf<fb::SendT>(step(p, 0), 0)]->stream =
                  fb::Stream::Compute;
            }},
        Fault{"tensor 99 of 5", [](fb::PlanT &p) { upload(p).tensor = 99; }},
        Fault{"tensor 2 is on other pipeline ranks",
              [](fb::PlanT &p) { upload(p).tensor = 2; }},
        Fault{"tensor \"w0\" is a parameter, which the host does not give",
              [](fb::PlanT &p) { upload(p).tensor = 1; }}));

} // namespace
