//===- MessageSlotsTest.cpp - No rank waits forever for a message ---------===//

#include "shardc/PipelineSchedules/MessageSlots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

using namespace shardc;

namespace {

/// A schedule, its simulation and the messages of its tasks.
struct Placed {
  PipelineSchedule schedule;
  PipelineSimulation simulation;
  std::vector<PipelineMessage> messages;

  int getNumTasks(int rank) const {
    return static_cast<int>(schedule.ranks[rank].size());
  }
  /// The place of a task on its rank, or -1.
  int find(const PipelineTask &task) const {
    const auto &tasks = schedule.ranks[schedule.rankOfStage[task.stage]];
    auto found = std::find(tasks.begin(), tasks.end(), task);
    return found == tasks.end() ? -1 : static_cast<int>(found - tasks.begin());
  }
};

} // namespace

/// Each value goes on to the next stage, each gradient to the one before;
/// with `skips`, values also cross a stage, and the gradients of the weights of
/// the last stage go to the first one, where no task needs them.
static Placed place(llvm::StringRef name, int ranks, int chunks,
                    int microbatches, bool skips,
                    const std::vector<StageTimes> &times) {
  Placed placed;
  placed.schedule =
      llvm::cantFail(makePipelineSchedule(name, ranks, chunks, microbatches));
  const PipelineSchedule &schedule = placed.schedule;
  placed.simulation = simulateSchedule(schedule, times);
  auto add = [&](const PipelineTask &from, const PipelineTask &to) {
    int sender = schedule.rankOfStage[from.stage];
    int receiver = schedule.rankOfStage[to.stage];
    if (sender != receiver)
      placed.messages.push_back(
          {sender, receiver, placed.find(from), placed.find(to)});
  };
  int stages = schedule.getNumStages();
  for (int m = 0; m < microbatches; ++m) {
    auto backward = [&](int stage) {
      PipelineTask input{TaskKind::InputGradient, stage, m};
      return placed.find(input) >= 0
                 ? input
                 : PipelineTask{TaskKind::Backward, stage, m};
    };
    for (int stage = 0; stage + 1 < stages; ++stage) {
      add({TaskKind::Forward, stage, m}, {TaskKind::Forward, stage + 1, m});
      add(backward(stage + 1), backward(stage));
      if (skips && stage + 2 < stages) {
        add({TaskKind::Forward, stage, m}, {TaskKind::Forward, stage + 2, m});
        add(backward(stage + 2), backward(stage));
      }
    }
  }
  int last = schedule.rankOfStage.back(), first = schedule.rankOfStage[0];
  if (skips && first != last)
    placed.messages.push_back(
        {last, first, placed.getNumTasks(last) - 1, placed.getNumTasks(first)});
  placeMessages(placed.simulation, placed.messages);
  return placed;
}

/// Each message starts behind its producer and ends before its consumer, and
/// the ranks start the messages that they share in one order.
static void checkSlots(const Placed &placed) {
  std::vector<bool> hasNumber(placed.messages.size(), false);
  for (const PipelineMessage &message : placed.messages) {
    ASSERT_GE(message.number, 0);
    ASSERT_LT(message.number, static_cast<int>(placed.messages.size()));
    EXPECT_FALSE(hasNumber[message.number]);
    hasNumber[message.number] = true;
    EXPECT_GT(message.sendStart, message.producer);
    EXPECT_GE(message.sendEnd, message.sendStart);
    EXPECT_LE(message.sendEnd, placed.getNumTasks(message.from));
    EXPECT_GE(message.receiveStart, 0);
    EXPECT_LE(message.receiveStart, message.receiveEnd);
    EXPECT_LE(message.receiveEnd, message.consumer);
  }
  for (int rank = 0; rank < placed.schedule.getNumRanks(); ++rank) {
    RankSlots slots = getSlots(placed.messages, rank, placed.getNumTasks(rank));
    int last = -1, starts = 0, ends = 0;
    for (const std::vector<int> &slot : slots.starts)
      for (int index : slot) {
        EXPECT_GT(placed.messages[index].number, last) << "rank " << rank;
        last = placed.messages[index].number;
        ++starts;
      }
    for (const std::vector<int> &slot : slots.ends)
      ends += static_cast<int>(slot.size());
    auto own =
        std::count_if(placed.messages.begin(), placed.messages.end(),
                      [&](const PipelineMessage &message) {
                        return message.from == rank || message.to == rank;
                      });
    EXPECT_EQ(starts, own);
    EXPECT_EQ(ends, own);
  }
}

namespace {

/// The graph that loading a plan checks: commands in order, a start before the
/// end of its message, an end before its waits, and the ends of a rank in the
/// order of their starts. Found by Kahn's algorithm, with times.
class JointGraph {
public:
  explicit JointGraph(const Placed &placed) : placed(placed) {
    size_t ends = placed.messages.size();
    successors.resize(ends);
    waitsFor.resize(ends);
    duration.resize(ends);
    for (int rank = 0; rank < placed.schedule.getNumRanks(); ++rank)
      addRank(rank);
  }

  /// The time until everything has run; negative if something never does.
  double run() {
    std::vector<double> time(successors.size(), 0);
    std::vector<int> ready;
    for (size_t node = 0; node < successors.size(); ++node)
      if (waitsFor[node] == 0)
        ready.push_back(static_cast<int>(node));
    size_t done = 0;
    double makespan = 0;
    while (!ready.empty()) {
      int node = ready.back();
      ready.pop_back();
      ++done;
      double end = time[node] + duration[node];
      makespan = std::max(makespan, end);
      for (int next : successors[node]) {
        time[next] = std::max(time[next], end);
        if (--waitsFor[next] == 0)
          ready.push_back(next);
      }
    }
    return done == successors.size() ? makespan : -1;
  }

private:
  void addEdge(int from, int to) {
    successors[from].push_back(to);
    ++waitsFor[to];
  }

  int addCommand(double seconds) {
    successors.emplace_back();
    waitsFor.push_back(0);
    duration.push_back(seconds);
    int node = static_cast<int>(successors.size()) - 1;
    if (lastCommand >= 0)
      addEdge(lastCommand, node);
    return lastCommand = node;
  }

  void addRank(int rank) {
    int tasks = placed.getNumTasks(rank), lastEnd = -1;
    RankSlots slots = getSlots(placed.messages, rank, tasks);
    lastCommand = -1;
    for (int slot = 0; slot <= tasks; ++slot) {
      // The end of a message is the node with its index.
      for (int index : slots.starts[slot]) {
        addEdge(addCommand(0), index);
        if (lastEnd >= 0)
          addEdge(lastEnd, index);
        lastEnd = index;
      }
      for (int index : slots.ends[slot])
        addEdge(index, addCommand(0));
      if (slot == tasks)
        break;
      const SimulatedTask &task = placed.simulation.tasks[rank][slot];
      addCommand(task.end - task.start);
    }
  }

  const Placed &placed;
  std::vector<std::vector<int>> successors;
  std::vector<int> waitsFor;
  std::vector<double> duration;
  int lastCommand = -1;
};

} // namespace

/// Calls `check` with every schedule of up to four ranks.
static void forEachSchedule(
    const std::function<void(llvm::StringRef, int, int, int)> &check) {
  for (llvm::StringRef name : getPipelineScheduleNames())
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int chunks = 1; chunks <= (name == "interleaved" ? 3 : 1); ++chunks)
        for (int microbatches = 1; microbatches <= 9; ++microbatches)
          if (name != "interleaved" || microbatches % ranks == 0)
            check(name, ranks, chunks, microbatches);
}

static std::string describe(llvm::StringRef name, int ranks, int chunks,
                            int microbatches) {
  return name.str() + ", " + std::to_string(ranks) + " ranks, " +
         std::to_string(chunks) + " chunks, " + std::to_string(microbatches) +
         " microbatches";
}

TEST(MessageSlots, NobodyWaitsForever) {
  unsigned state = 5;
  auto draw = [&](int below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>((state >> 8) % below);
  };
  forEachSchedule([&](llvm::StringRef name, int ranks, int chunks,
                      int microbatches) {
    size_t stages = static_cast<size_t>(ranks) * chunks;
    std::vector<std::vector<StageTimes>> times = {
        std::vector<StageTimes>(stages, {1, 1, 1, 0, 0}),
        std::vector<StageTimes>(stages, {1, 1, 1, 0.5, 0.5}),
        // All at one time: the order of tasks alone decides.
        std::vector<StageTimes>(stages, {0, 0, 0, 0, 0}),
        std::vector<StageTimes>(stages), std::vector<StageTimes>(stages)};
    for (size_t random : {3, 4})
      for (StageTimes &stage : times[random])
        stage = {draw(4), draw(4), draw(3), draw(3), draw(3)};
    for (const std::vector<StageTimes> &each : times)
      for (bool skips : {false, true}) {
        SCOPED_TRACE(describe(name, ranks, chunks, microbatches));
        Placed placed = place(name, ranks, chunks, microbatches, skips, each);
        checkSlots(placed);
        EXPECT_GE(JointGraph(placed).run(), 0);
      }
  });
}

/// Waiting for messages in these slots costs no time, if they take none.
TEST(MessageSlots, WaitsCostNoTime) {
  forEachSchedule(
      [&](llvm::StringRef name, int ranks, int chunks, int microbatches) {
        std::vector<StageTimes> times(static_cast<size_t>(ranks) * chunks,
                                      {1, 1, 1, 0, 0});
        Placed placed =
            place(name, ranks, chunks, microbatches, /*skips=*/false, times);
        EXPECT_DOUBLE_EQ(JointGraph(placed).run(), placed.simulation.makespan)
            << describe(name, ranks, chunks, microbatches);
      });
}

TEST(MessageSlots, TwoRanks) {
  // Rank 0: F0 F1 B0 B1, rank 1: F0 B0 F1 B1.
  Placed placed = place("1f1b", 2, 1, 2, /*skips=*/false,
                        std::vector<StageTimes>(2, {1, 1, 1, 0, 0}));
  ASSERT_EQ(placed.messages.size(), 4u);
  const PipelineMessage &first = placed.messages[0];
  EXPECT_EQ(first.number, 0);
  EXPECT_EQ(first.sendStart, 1);
  EXPECT_EQ(first.receiveStart, 0);
  EXPECT_EQ(first.receiveEnd, 0);
  // Rank 0 sends F1 at 2; rank 1 has taken up its receive by then.
  const PipelineMessage &second = placed.messages[2];
  EXPECT_EQ(second.number, 1);
  EXPECT_EQ(second.sendStart, 2);
  EXPECT_EQ(second.receiveStart, 1);
  EXPECT_EQ(second.receiveEnd, 2);
}
