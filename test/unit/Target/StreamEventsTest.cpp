//===- StreamEventsTest.cpp - Events between streams ----------------------===//
//
// Small cases with known answers, and random programs against the closure of
// the order over all runs of their loops.
//
//===----------------------------------------------------------------------===//

#include "shardc/Target/Plan/StreamEvents.h"

#include "llvm/ADT/STLExtras.h"

#include <gmock/gmock.h>
#include <random>

using namespace shardc;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

using Events = std::vector<std::vector<uint32_t>>;

/// A command that reads and writes some bytes each.
StreamCommand command(unsigned stream, std::vector<int64_t> reads,
                      std::vector<int64_t> writes) {
  StreamCommand result;
  result.stream = stream;
  for (int64_t byte : reads)
    result.reads.push_back({byte, byte + 1});
  for (int64_t byte : writes)
    result.writes.push_back({byte, byte + 1});
  return result;
}

StreamCommand loop(int64_t runs, uint32_t commands) {
  StreamCommand result;
  result.runs = runs;
  result.commands = commands;
  return result;
}

TEST(StreamEventsTest, OneStreamHasNone) {
  EXPECT_THAT(findStreamEvents({command(0, {}, {1}), command(0, {1}, {2}),
                                command(0, {2}, {1})}),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(StreamEventsTest, ReadersDoNotWaitForReaders) {
  EXPECT_THAT(findStreamEvents({command(0, {1}, {2}), command(1, {1}, {3})}),
              ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(StreamEventsTest, TheLatestConflictIsEnough) {
  EXPECT_THAT(findStreamEvents({command(0, {}, {1}), command(0, {}, {2}),
                                command(0, {}, {3}), command(1, {1, 2}, {})}),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre(1)));
}

TEST(StreamEventsTest, MemoryUsedAgainWaitsForItsReaders) {
  // Bytes 0 to 8 are read by the collective, 4 to 12 written for another
  // tensor.
  StreamCommand first, second;
  first.stream = 1;
  first.reads = {{0, 8}};
  second.writes = {{4, 12}};
  EXPECT_THAT(findStreamEvents({first, second}),
              ElementsAre(IsEmpty(), ElementsAre(0)));
  second.writes = {{8, 12}};
  EXPECT_THAT(findStreamEvents({first, second}),
              ElementsAre(IsEmpty(), IsEmpty()));
}

TEST(StreamEventsTest, WhatAnEventImpliesIsLeftOut) {
  // The last command reads the results of both; the second waited for the
  // first.
  EXPECT_THAT(findStreamEvents({command(0, {}, {1}), command(1, {1}, {2}),
                                command(2, {1, 2}, {})}),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1)));
  // Without that it waits for both.
  EXPECT_THAT(findStreamEvents({command(0, {}, {1}), command(1, {}, {2}),
                                command(2, {1, 2}, {})}),
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1)));
  // The second command of a stream profits from the wait of the first.
  EXPECT_THAT(findStreamEvents({command(0, {}, {1}), command(1, {1}, {}),
                                command(1, {1}, {2})}),
              ElementsAre(IsEmpty(), ElementsAre(0), IsEmpty()));
}

TEST(StreamEventsTest, RunsWaitForTheRunBefore) {
  // Compute fills byte 1, the collective reads it: the next run waits.
  std::vector<StreamCommand> commands = {loop(3, 2), command(0, {}, {1}),
                                         command(1, {1}, {2})};
  EXPECT_THAT(findStreamEvents(commands),
              ElementsAre(IsEmpty(), ElementsAre(2), ElementsAre(1)));
  // Of one run there is none before.
  commands[0].runs = 1;
  EXPECT_THAT(findStreamEvents(commands),
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(1)));
}

/// All that is wrong with `events`: pairs of conflicting runs of commands that
/// no path orders.
int countUnordered(llvm::ArrayRef<StreamCommand> commands,
                   const Events &events) {
  std::vector<uint32_t> issued;
  std::vector<std::vector<bool>> before;
  std::vector<int> latest(commands.size(), -1);
  int unordered = 0;
  auto conflict = [](const StreamCommand &a, const StreamCommand &b) {
    for (ByteRange write : a.writes) {
      for (ByteRange other : b.writes)
        if (write.begin == other.begin)
          return true;
      for (ByteRange other : b.reads)
        if (write.begin == other.begin)
          return true;
    }
    return false;
  };
  auto issue = [&](uint32_t number) {
    const StreamCommand &command = commands[number];
    std::vector<bool> mine(issued.size() + 1);
    auto follow = [&](size_t other) {
      mine[other] = true;
      for (size_t i = 0; i < other; ++i)
        if (before[other][i])
          mine[i] = true;
    };
    for (size_t i = 0; i < issued.size(); ++i)
      if (commands[issued[i]].stream == command.stream)
        follow(i);
    for (uint32_t other : events[number])
      if (latest[other] >= 0)
        follow(latest[other]);
    for (size_t i = 0; i < issued.size(); ++i) {
      const StreamCommand &other = commands[issued[i]];
      if (!mine[i] && (conflict(command, other) || conflict(other, command)))
        ++unordered;
    }
    latest[number] = issued.size();
    issued.push_back(number);
    before.push_back(std::move(mine));
  };
  for (uint32_t i = 0; i < commands.size(); ++i) {
    issue(i);
    for (int64_t run = 0; commands[i].commands > 0 && run < commands[i].runs;
         ++run)
      for (uint32_t j = 1; j <= commands[i].commands; ++j)
        issue(i + j);
    i += commands[i].commands;
  }
  return unordered;
}

TEST(StreamEventsTest, OrderAllConflictsOfRandomProgramsAndNoMore) {
  std::mt19937 random(1);
  auto upTo = [&](uint32_t limit) { return uint32_t(random() % limit); };
  int total = 0, ofRunsBefore = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::vector<StreamCommand> commands;
    uint32_t left = 0, size = 2 + upTo(12), bytes = 2 + upTo(8);
    while (commands.size() < size) {
      if (left == 0 && commands.size() + 1 < size && upTo(5) == 0) {
        left = 1 + upTo(size - commands.size() - 1);
        commands.push_back(loop(1 + upTo(4), left));
        continue;
      }
      commands.push_back(
          command(upTo(3), {upTo(bytes), upTo(bytes)}, {upTo(bytes)}));
      left -= left > 0;
    }
    Events events = findStreamEvents(commands);
    ASSERT_EQ(events.size(), commands.size());
    ASSERT_EQ(countUnordered(commands, events), 0) << "trial " << trial;
    for (uint32_t number = 0; number < size; ++number) {
      ASSERT_TRUE(llvm::is_sorted(events[number]));
      for (size_t i = 0; i < events[number].size(); ++i) {
        Events fewer = events;
        fewer[number].erase(fewer[number].begin() + i);
        ASSERT_GT(countUnordered(commands, fewer), 0)
            << "trial " << trial << ": command " << number
            << " does not need to wait for command " << events[number][i];
        ++total;
        ofRunsBefore += events[number][i] > number;
      }
    }
  }
  EXPECT_GT(total, 5000);
  EXPECT_GT(ofRunsBefore, 500);
}

} // namespace
