//===- HappensBeforeTest.cpp - Accesses that nothing orders ---------------===//
//
// The checker on the plan made by hand, on small cases of its rules, and on
// random programs against a transitive closure over all runs of all loops.
//
//===----------------------------------------------------------------------===//

#include "TestPlan.h"

#include "plan/HappensBefore.h"

#include <gtest/gtest.h>
#include <random>

using namespace shardc::rt;

namespace {

constexpr Stream compute = Stream::Compute;
constexpr Stream communication = Stream::Communication;
constexpr Stream copies = Stream::Copies;

/// A program of copies between contiguous buffers of 64 bytes.
class Commands {
public:
  explicit Commands(uint32_t buffers = 8) {
    plan.gpuTarget = "sm_90";
    plan.arenaBytes = buffers * 64;
    program.name = "p";
    for (uint32_t i = 0; i < buffers; ++i)
      program.buffers.push_back({i * 64, 64, DType::F32, {16}, 0});
  }

  Commands &copy(Stream stream, uint32_t in, uint32_t out,
                 std::vector<uint32_t> after = {}) {
    Command &command = program.commands.emplace_back();
    command.operation = CopyCommand{in, out};
    command.stream = stream;
    command.after = std::move(after);
    return *this;
  }
  Commands &loop(int64_t runs, uint32_t commands) {
    program.commands.emplace_back().operation = LoopCommand{runs, commands};
    return *this;
  }

  /// "" if all is ordered, else the error.
  std::string check() const {
    return std::string(checkHappensBefore(plan, program).status().message());
  }

  PlanSpec plan;
  ProgramSpec program;
};

TEST(HappensBeforeTest, CountsWhatItOrders) {
  auto plan = Plan::parse(test::makePlan(2, test::onGpu));
  ASSERT_TRUE(plan.ok()) << plan.status();
  auto report =
      checkHappensBefore((*plan)->spec(), (*plan)->spec().programs[0]);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->commands[0], 3);
  EXPECT_EQ(report->commands[1], 2);
  EXPECT_EQ(report->commands[2], 4);
  EXPECT_EQ(report->events, 4);
  EXPECT_EQ(report->concurrentPairs, 0);

  plan = Plan::parse(test::makePlan(2));
  ASSERT_TRUE(plan.ok()) << plan.status();
  report = checkHappensBefore((*plan)->spec(), (*plan)->spec().programs[0]);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->commands[0], 3);
  EXPECT_EQ(report->commands[1], 2);
}

TEST(HappensBeforeTest, EveryMissingEventIsAnError) {
  for (size_t number : {1, 2, 4, 6}) {
    absl::Status status =
        Plan::parse(test::makePlan(2, [&](fb::PlanT &p) {
          test::onGpu(p);
          ASSERT_EQ(p.programs[0]->commands[number]->after.size(), 1u);
          p.programs[0]->commands[number]->after.clear();
        })).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << number;
    EXPECT_NE(status.message().find("nothing orders command"),
              absl::string_view::npos)
        << status;
  }
}

TEST(HappensBeforeTest, TheErrorNamesCommandsBytesAndOwners) {
  absl::Status status = Plan::parse(test::makePlan(2, [](fb::PlanT &p) {
                          test::onGpu(p);
                          auto &commands = p.programs[0]->commands;
                          commands[0]->source = "m.mlir:3:5";
                          commands[1]->after.clear();
                        })).status();
  EXPECT_NE(
      status.message().find(
          "program \"train_step\": nothing orders command 1 (launch on stream "
          "compute), which reads bytes 256 to 280 of the arena in buffer 0 "
          "(tensor \"x\"), after command 0 (upload on stream copies, "
          "m.mlir:3:5), which writes them in tensor \"x\""),
      absl::string_view::npos)
      << status;
}

TEST(HappensBeforeTest, ReadersNeedNoOrder) {
  EXPECT_EQ(Commands().copy(compute, 0, 1).copy(communication, 0, 2).check(),
            "");
}

TEST(HappensBeforeTest, AllThreeKindsOfConflictNeedOrder) {
  EXPECT_NE(Commands().copy(compute, 0, 1).copy(copies, 1, 2).check(), "");
  EXPECT_NE(Commands().copy(compute, 1, 2).copy(copies, 0, 1).check(), "");
  EXPECT_NE(Commands().copy(compute, 0, 1).copy(copies, 2, 1).check(), "");
  EXPECT_EQ(Commands().copy(compute, 0, 1).copy(copies, 2, 1, {0}).check(), "");
}

TEST(HappensBeforeTest, MemoryThatIsUsedAgainCounts) {
  Commands commands;
  commands.copy(compute, 0, 1).copy(communication, 2, 3);
  EXPECT_EQ(commands.check(), "");
  // Buffer 3 takes the last half of buffer 1's bytes.
  commands.program.buffers[3].offset = 96;
  EXPECT_EQ(commands.check(),
            "program \"p\": nothing orders command 1 (copy on stream "
            "communication), which writes bytes 96 to 128 of the arena in "
            "buffer 3, after command 0 (copy on stream compute), which writes "
            "them in buffer 1");
  commands.program.commands[1].after = {0};
  EXPECT_EQ(commands.check(), "");
}

TEST(HappensBeforeTest, OrderIsTransitive) {
  Commands commands;
  commands.copy(compute, 0, 1)
      .copy(communication, 2, 3, {0})
      .copy(copies, 1, 4, {1});
  EXPECT_EQ(commands.check(), "");
  commands.program.commands[2].after.clear();
  EXPECT_NE(commands.check(), "");
}

/// A command waits for another as a whole, not for its successors.
TEST(HappensBeforeTest, AnEventSaysNothingOfLaterCommands) {
  EXPECT_NE(Commands()
                .copy(compute, 0, 1)
                .copy(compute, 0, 2)
                .copy(copies, 2, 3, {0})
                .check(),
            "");
}

TEST(HappensBeforeTest, RunsOfALoopMeet) {
  Commands commands;
  commands.loop(3, 2).copy(compute, 0, 1).copy(communication, 1, 2, {1});
  // The second run writes buffer 1 while the first still reads it.
  EXPECT_NE(commands.check().find("nothing orders command 1"),
            std::string::npos);
  commands.program.commands[1].after = {2};
  EXPECT_EQ(commands.check(), "");
  commands.program.commands[1].after.clear();
  std::get<LoopCommand>(commands.program.commands[0].operation).runs = 1;
  EXPECT_EQ(commands.check(), "");
}

TEST(HappensBeforeTest, BehindALoopTheLastRunIsMeant) {
  Commands commands;
  commands.loop(2, 1).copy(compute, 0, 1).copy(copies, 1, 2, {1});
  EXPECT_EQ(commands.check(), "");
  commands.program.commands[2].after.clear();
  EXPECT_NE(commands.check(), "");
}

/// Runs write their own rows; the check takes the rows of all runs.
TEST(HappensBeforeTest, MovingBuffersTouchAllTheirBytes) {
  Commands commands;
  commands.program.buffers[1].stride = 64;
  commands.copy(copies, 0, 3).loop(3, 1).copy(compute, 4, 1);
  EXPECT_NE(commands.check().find("bytes 192 to 256"), std::string::npos)
      << commands.check();
  commands.program.commands[2].after = {0};
  EXPECT_EQ(commands.check(), "");
}

/// Neighbours are reduced with the padding between them.
TEST(HappensBeforeTest, CollectivesTouchPadding) {
  Commands commands;
  commands.plan.alignment = 64;
  commands.program.buffers[1].bytes = 20;
  commands.program.buffers[2] = {96, 32, DType::F32, {8}, 0};
  commands.copy(compute, 0, 2);
  Command &start = commands.program.commands.emplace_back();
  start.operation = CollectiveStartCommand{
      CollectiveKind::AllReduce, Reduction::Sum, {}, {}, {{1, 1, 0, -1}}, 0};
  start.stream = communication;
  EXPECT_NE(commands.check().find("bytes 96 to 128"), std::string::npos)
      << commands.check();
}

/// Whether all accesses of all runs are ordered, by the closure of the order
/// over every pair of them.
bool isOrdered(const Commands &commands) {
  struct Instance {
    uint32_t command;
    std::vector<bool> before;
  };
  std::vector<Instance> instances;
  std::vector<int> latest(commands.program.commands.size(), -1);
  auto issue = [&](uint32_t number) {
    const Command &command = commands.program.commands[number];
    Instance added{number, std::vector<bool>(instances.size() + 1)};
    auto follow = [&](size_t other) {
      added.before[other] = true;
      for (size_t i = 0; i < other; ++i)
        if (instances[other].before[i])
          added.before[i] = true;
    };
    for (size_t i = 0; i < instances.size(); ++i)
      if (commands.program.commands[instances[i].command].stream ==
          command.stream)
        follow(i);
    for (uint32_t other : command.after)
      if (latest[other] >= 0)
        follow(latest[other]);
    latest[number] = instances.size();
    instances.push_back(std::move(added));
  };
  const std::vector<Command> &list = commands.program.commands;
  for (uint32_t i = 0; i < list.size(); ++i) {
    issue(i);
    if (auto *loop = std::get_if<LoopCommand>(&list[i].operation)) {
      for (int64_t run = 0; run < loop->runs; ++run)
        for (uint32_t j = 1; j <= loop->commands; ++j)
          issue(i + j);
      i += loop->commands;
    }
  }
  auto copyOf = [&](const Instance &instance) {
    return std::get_if<CopyCommand>(&list[instance.command].operation);
  };
  for (size_t later = 0; later < instances.size(); ++later)
    for (size_t earlier = 0; earlier < later; ++earlier) {
      const CopyCommand *a = copyOf(instances[earlier]);
      const CopyCommand *b = copyOf(instances[later]);
      bool conflict =
          a && b && (a->out == b->out || a->out == b->in || a->in == b->out);
      if (conflict && !instances[later].before[earlier])
        return false;
    }
  return true;
}

TEST(HappensBeforeTest, AgreesWithTheClosureOnRandomPrograms) {
  std::mt19937 random(1);
  auto upTo = [&](uint32_t limit) { return uint32_t(random() % limit); };
  int ordered = 0, unordered = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Commands commands;
    uint32_t left = 0, size = 2 + upTo(7);
    for (uint32_t number = 0; number < size; ++number) {
      if (left == 0 && size - number > 1 && upTo(4) == 0) {
        left = 1 + upTo(size - number - 1);
        commands.loop(1 + upTo(4), left);
        continue;
      }
      std::vector<uint32_t> after;
      uint32_t last = left > 0 ? number + left - 1 : number;
      for (uint32_t other = 0; other <= last; ++other)
        if (other != number && upTo(2) == 0)
          after.push_back(other);
      uint32_t in = upTo(8);
      commands.copy(Stream(upTo(3)), in, (in + 1 + upTo(7)) % 8, after);
      left -= left > 0;
    }
    bool expected = isOrdered(commands);
    ++(expected ? ordered : unordered);
    ASSERT_EQ(commands.check().empty(), expected)
        << "trial " << trial << ": " << commands.check();
  }
  EXPECT_GT(ordered, 2000);
  EXPECT_GT(unordered, 2000);
}

} // namespace
