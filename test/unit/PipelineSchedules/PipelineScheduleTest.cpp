//===- PipelineScheduleTest.cpp - Schedules and their figures -------------===//

#include "shardc/PipelineSchedules/PipelineSchedule.h"
#include "shardc/PipelineSchedules/ScheduleText.h"
#include "shardc/PipelineSchedules/SimulateSchedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

using namespace shardc;
using testing::ElementsAre;

namespace {

PipelineSchedule make(llvm::StringRef name, int64_t ranks, int64_t chunks,
                      int64_t microbatches) {
  llvm::Expected<PipelineSchedule> schedule =
      makePipelineSchedule(name, ranks, chunks, microbatches);
  EXPECT_TRUE(bool(schedule));
  if (!schedule) {
    ADD_FAILURE() << llvm::toString(schedule.takeError());
    return {};
  }
  return *schedule;
}

std::string check(const PipelineSchedule &schedule) {
  return llvm::toString(checkPipelineSchedule(schedule));
}

/// Equal times for all stages, of which a chunk has its part.
std::vector<StageTimes> getTimes(const PipelineSchedule &schedule, double f,
                                 double i, double w, double send = 0) {
  double chunks =
      static_cast<double>(schedule.getNumStages()) / schedule.getNumRanks();
  return std::vector<StageTimes>(
      schedule.getNumStages(),
      {f / chunks, i / chunks, w / chunks, send, send});
}

double getBubblePercent(llvm::StringRef name, int64_t ranks, int64_t chunks,
                        int64_t microbatches) {
  PipelineSchedule schedule = make(name, ranks, chunks, microbatches);
  return 100 *
         simulateSchedule(schedule, getTimes(schedule, 1, 1, 1)).getBubble();
}

/// The schedule that `text` is, as text, or the error.
std::string read(llvm::StringRef text, int64_t ranks, int64_t chunks,
                 int64_t microbatches) {
  llvm::Expected<PipelineSchedule> schedule =
      readPipelineSchedule(text, "a.csv", ranks, chunks, microbatches);
  if (!schedule)
    return llvm::toString(schedule.takeError());
  return printPipelineSchedule(*schedule);
}

} // namespace

TEST(PipelineSchedule, Orders) {
  EXPECT_EQ(printPipelineSchedule(make("gpipe", 2, 1, 2)),
            "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n");
  EXPECT_EQ(printPipelineSchedule(make("1f1b", 2, 1, 3)),
            "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(printPipelineSchedule(make("interleaved", 2, 2, 2)),
            "0F0,0F1,2F0,2F1,2B0,2B1,0B0,0B1\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1B0,1B1\n");
  EXPECT_EQ(printPipelineSchedule(make("zero-bubble", 2, 1, 3)),
            "0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2\n"
            "1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2\n");
}

TEST(PipelineSchedule, OneForwardOneBackwardAndGPipeTakeTheSameTime) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int microbatches = 1; microbatches <= 24; ++microbatches)
      for (llvm::StringRef name : {"gpipe", "1f1b"}) {
        PipelineSchedule schedule = make(name, ranks, 1, microbatches);
        EXPECT_EQ(check(schedule), "");
        for (auto [f, i, w] :
             {std::tuple(1., 1., 1.), {2., 3., 1.}, {3., 1., 4.}}) {
          PipelineSimulation result =
              simulateSchedule(schedule, getTimes(schedule, f, i, w));
          EXPECT_DOUBLE_EQ(result.makespan,
                           (microbatches + ranks - 1) * (f + i + w))
              << name.str() << ' ' << ranks << ' ' << microbatches;
          EXPECT_NEAR(result.getBubble(),
                      (ranks - 1.) / (microbatches + ranks - 1), 1e-12);
        }
      }
}

TEST(PipelineSchedule, InterleavingDividesTheIdleTime) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int chunks = 1; chunks <= 3; ++chunks)
      for (int microbatches = ranks; microbatches <= 24;
           microbatches += ranks) {
        PipelineSchedule schedule =
            make("interleaved", ranks, chunks, microbatches);
        EXPECT_EQ(check(schedule), "");
        for (double unit : {1., 6.}) {
          PipelineSimulation result =
              simulateSchedule(schedule, getTimes(schedule, unit, unit, unit));
          EXPECT_NEAR(result.makespan,
                      3 * unit * (microbatches + (ranks - 1.) / chunks), 1e-9)
              << ranks << ' ' << chunks << ' ' << microbatches;
        }
      }
}

TEST(PipelineSchedule, ZeroBubbleHidesTheGradientsOfWeights) {
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int microbatches = 1; microbatches <= 24; ++microbatches) {
      PipelineSchedule schedule = make("zero-bubble", ranks, 1, microbatches);
      EXPECT_EQ(check(schedule), "");
      if (microbatches < 2 * ranks)
        continue;
      for (auto [f, i, w] : {std::tuple(1., 1., 1.),
                             {2., 3., 1.},
                             {3., 1., 4.},
                             {3., 4., 2.},
                             {1., 2., 3.},
                             {2., 1., 1.5}}) {
        PipelineSimulation result =
            simulateSchedule(schedule, getTimes(schedule, f, i, w));
        EXPECT_NEAR(result.makespan,
                    microbatches * (f + i + w) +
                        (ranks - 1) * (f + i - std::min({f, i, w})),
                    1e-9)
            << ranks << ' ' << microbatches << ": " << f << i << w;
      }
    }
}

TEST(PipelineSchedule, Bubbles) {
  EXPECT_NEAR(getBubblePercent("gpipe", 4, 1, 8), 27.3, 0.05);
  EXPECT_NEAR(getBubblePercent("1f1b", 4, 1, 8), 27.3, 0.05);
  EXPECT_NEAR(getBubblePercent("interleaved", 4, 2, 8), 15.8, 0.05);
  EXPECT_NEAR(getBubblePercent("zero-bubble", 4, 1, 8), 11.1, 0.05);
  EXPECT_NEAR(getBubblePercent("1f1b", 8, 1, 32), 17.9, 0.05);
  EXPECT_NEAR(getBubblePercent("interleaved", 8, 2, 32), 9.9, 0.05);
  EXPECT_NEAR(getBubblePercent("interleaved", 8, 4, 32), 5.2, 0.05);
  EXPECT_NEAR(getBubblePercent("zero-bubble", 8, 1, 32), 6.8, 0.05);
}

TEST(PipelineSchedule, LiveMicrobatches) {
  EXPECT_THAT(countLiveMicrobatches(make("gpipe", 4, 1, 8)),
              ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(countLiveMicrobatches(make("1f1b", 4, 1, 8)),
              ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(countLiveMicrobatches(make("interleaved", 4, 2, 8)),
              ElementsAre(5.5, 4.5, 3.5, 2.5));
  EXPECT_THAT(countLiveMicrobatches(make("zero-bubble", 4, 1, 8)),
              ElementsAre(4, 4, 4, 4));
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (int microbatches = 1; microbatches <= 24; ++microbatches)
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(
            countLiveMicrobatches(make("1f1b", ranks, 1, microbatches))[rank],
            std::min(microbatches, ranks - rank));
        EXPECT_EQ(countLiveMicrobatches(
                      make("zero-bubble", ranks, 1, microbatches))[rank],
                  std::min(microbatches, ranks));
      }
}

TEST(PipelineSchedule, TransfersTakeTime) {
  // Two stages, one microbatch: F, send, F, B, send, B.
  PipelineSchedule one = make("1f1b", 2, 1, 1);
  EXPECT_DOUBLE_EQ(simulateSchedule(one, getTimes(one, 1, 1, 1, 0.5)).makespan,
                   7);
  // A gap opens where a rank waits for the next one in every round.
  PipelineSchedule interleaved = make("interleaved", 4, 2, 8);
  EXPECT_DOUBLE_EQ(
      simulateSchedule(interleaved, getTimes(interleaved, 1, 1, 1, 0.5))
          .makespan,
      35.5);
  // Between stages of one rank nothing is sent.
  PipelineSchedule alone = make("interleaved", 1, 3, 2);
  EXPECT_DOUBLE_EQ(
      simulateSchedule(alone, getTimes(alone, 1, 1, 1, 9)).makespan, 6);
}

TEST(PipelineSchedule, StagesDiffer) {
  // The slowest stage sets the pace: 1 + M * (5 * 3) + 2 behind rank 1.
  PipelineSchedule schedule = make("1f1b", 2, 1, 4);
  std::vector<StageTimes> times = {{1, 1, 1}, {5, 5, 5}};
  PipelineSimulation result = simulateSchedule(schedule, times);
  EXPECT_DOUBLE_EQ(result.makespan, 1 + 4 * 15 + 2);
  EXPECT_THAT(result.busy, ElementsAre(12, 60));
  EXPECT_DOUBLE_EQ(result.tasks[1].front().start, 1);
}

TEST(PipelineSchedule, NumbersThatDoNotSuit) {
  auto getError = [](llvm::StringRef name, int64_t ranks, int64_t chunks,
                     int64_t microbatches) {
    llvm::Expected<PipelineSchedule> schedule =
        makePipelineSchedule(name, ranks, chunks, microbatches);
    return schedule ? "" : llvm::toString(schedule.takeError());
  };
  EXPECT_EQ(getError("1f1", 2, 1, 2),
            "unknown schedule '1f1'; did you mean '1f1b'?");
  EXPECT_EQ(getError("interleaved", 4, 2, 6),
            "schedule 'interleaved' needs a number of microbatches that the 4 "
            "ranks of the pipeline divide, found 6");
  EXPECT_EQ(getError("gpipe", 4, 2, 8),
            "schedule 'gpipe' has one stage per rank, found 2; several need "
            "'interleaved' or a schedule from a file");
  EXPECT_EQ(getError("1f1b", 4, 1, int64_t(1) << 40),
            "a schedule of 1099511627776 microbatches on 4 ranks with 1 stages "
            "each has more than 4194304 tasks");
  EXPECT_EQ(getError("1f1b", 0, 1, 1),
            "a schedule needs at least one stage and one microbatch");
}

TEST(PipelineSchedule, TextIsReadBack) {
  for (llvm::StringRef name : getPipelineScheduleNames()) {
    int64_t chunks = name == "interleaved" ? 2 : 1;
    std::string text = printPipelineSchedule(make(name, 4, chunks, 8));
    EXPECT_EQ(read(text, 4, chunks, 8), text);
  }
  // Stages on any rank; spaces, empty cells and returns; a line without an end.
  EXPECT_EQ(read("0F0 ,, 3F0,3B0,0I0,0W0,\r\n1F0,2F0,2I0,2W0,1B0", 2, 2, 1),
            "0F0,3F0,3B0,0I0,0W0\n1F0,2F0,2I0,2W0,1B0\n");
}

TEST(PipelineSchedule, WrongTexts) {
  EXPECT_EQ(
      read("0F0,0X0\n", 1, 1, 1),
      "a.csv:1:5: expected a task such as 0F0 (stage, one of F, B, I and W, "
      "microbatch), found '0X0'");
  EXPECT_EQ(
      read("0F0,0B\n", 1, 1, 1),
      "a.csv:1:5: expected a task such as 0F0 (stage, one of F, B, I and W, "
      "microbatch), found '0B'");
  EXPECT_EQ(
      read("0F0,0B0\n1F0, 2B0\n", 2, 1, 1),
      "a.csv:2:6: '2B0': there are stages 0 to 1 and microbatches 0 to 0");
  EXPECT_EQ(read("0F0,0B0\n1F0,0B0\n", 2, 1, 1),
            "a.csv:2:5: '0B0': stage 0 is on "
            "row 1");
  EXPECT_EQ(
      read("0F0,0B0\n", 2, 1, 1),
      "a.csv: expected a row for each of the 2 ranks of the pipeline, found 1");
  EXPECT_EQ(read("0F0,0B0\n1F0,1B0\n", 1, 2, 1),
            "a.csv:2:1: a row too many: the pipeline has 1 ranks");
  EXPECT_EQ(read("", 1, 1, 1), "a.csv: stage 0 has no task");
  EXPECT_EQ(read("0F0,0B0\n0F1", 2, 1, 2),
            "a.csv:2:1: '0F1': stage 0 is on row 1");
  EXPECT_EQ(read("0F0,0B0,0F0", 1, 1, 1), "a.csv: 0F0 (rank 0) is there twice");
  EXPECT_EQ(read("0F0,0I0", 1, 1, 1), "a.csv: 0W0 is missing: a stage has for "
                                      "each microbatch F and either B or "
                                      "I and W");
  EXPECT_EQ(read("0F0,0F1,0B0", 1, 1, 2),
            "a.csv: 0B1 is missing: a stage has for each microbatch F and "
            "either B or "
            "I and W");
  EXPECT_EQ(
      read("0F0,0B0,0I0,0W0", 1, 1, 1),
      "a.csv: 0B0 stands beside I or W of the same stage and microbatch, which "
      "are its two parts");
  EXPECT_EQ(read("0F0,0F1,0B1,0B0", 1, 1, 2),
            "a.csv: 0B1 (rank 0) comes out of order: a stage adds up the "
            "gradients of "
            "its weights in the order of microbatches, so that every schedule "
            "gives the same sums");
  EXPECT_EQ(read("0F1,0F0,0B0,0B1", 1, 1, 2),
            "a.csv: 0F1 (rank 0) comes out of order: a stage takes the "
            "microbatches in their order, in which losses are added up");
  EXPECT_EQ(
      read("0F99999999999999999999", 1, 1, 1),
      "a.csv:1:1: expected a task such as 0F0 (stage, one of F, B, I and W, "
      "microbatch), found '0F99999999999999999999'");
}

TEST(PipelineSchedule, ErrorsArePrintable) {
  EXPECT_EQ(read(llvm::StringRef("0F0,\0\x1b[31m\xff,", 11), 1, 1, 1),
            "a.csv:1:5: expected a task such as 0F0 (stage, one of F, B, I and "
            "W, microbatch), found '\\x00\\x1b[31m\\xff'");
  std::string found = read(std::string(100, '7'), 1, 1, 1);
  EXPECT_THAT(found,
              testing::EndsWith("found '" + std::string(40, '7') + "…'"));
}

/// Numbers for which there is no memory are found before it is allocated.
TEST(PipelineSchedule, MoreTasksThanThereMayBe) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (auto [ranks, chunks, microbatches] :
       {std::tuple(int64_t(2), int64_t(2000000000), int64_t(4)),
        {2, most, 4},
        {most, most, most},
        {most, 2, 1},
        {1, 1, most},
        {2, 1, maxPipelineTasks / 6 + 1}}) {
    EXPECT_THAT(read("0F0,0B0\n1F0,1B0", ranks, chunks, microbatches),
                testing::EndsWith("has more than 4194304 tasks"));
    for (llvm::StringRef name : getPipelineScheduleNames())
      EXPECT_THAT(
          llvm::toString(makePipelineSchedule(name, ranks, chunks, microbatches)
                             .takeError()),
          testing::EndsWith("has more than 4194304 tasks"));
  }
  EXPECT_EQ(read("0F0", 1, 0, 1),
            "a schedule needs at least one stage and one microbatch");
}

/// Checking takes time in proportion to the tasks, not to their square.
TEST(PipelineSchedule, ManyRanks) {
  constexpr int ranks = 300000;
  std::string text;
  for (int rank = 0; rank < ranks; ++rank)
    text += std::to_string(rank) + "F0," + std::to_string(rank) + "B0\n";
  EXPECT_TRUE(bool(readPipelineSchedule(text, "a.csv", ranks, 1, 1)));
}

TEST(PipelineSchedule, WaitsForever) {
  EXPECT_EQ(
      read("0B0,0F0", 1, 1, 1),
      "a.csv: the schedule waits forever: 0B0 (rank 0) waits for 0F0, which "
      "stands behind 0B0 on rank 0");
  // Rank 0 wants its gradient before it sends the second microbatch, rank 1 the
  // second microbatch before it makes the gradient.
  EXPECT_EQ(
      read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1", 2, 1, 2),
      "a.csv: the schedule waits forever: 0B0 (rank 0) waits for 1B0, which "
      "stands behind 1F1 on rank 1; 1F1 (rank 1) waits for 0F1, which "
      "stands behind 0B0 on rank 0");
}

/// The check and the simulation agree on whether an order comes to its end.
TEST(PipelineSchedule, RandomOrdersEitherRunOrNameACycle) {
  unsigned state = 1;
  auto draw = [&](size_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  int forever = 0;
  for (int trial = 0; trial < 500; ++trial) {
    PipelineSchedule schedule = make("gpipe", 2 + draw(3), 1, 1 + draw(3));
    for (auto &tasks : schedule.ranks)
      for (size_t swaps = draw(3); swaps > 0; --swaps)
        std::swap(tasks[draw(tasks.size())], tasks[draw(tasks.size())]);
    std::string error = check(schedule);
    size_t total = 0, done = 0;
    PipelineSimulation result =
        simulateSchedule(schedule, getTimes(schedule, 1, 1, 1));
    for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      total += schedule.ranks[rank].size();
      done += result.tasks[rank].size();
    }
    if (error.find("out of order") != error.npos)
      continue;
    EXPECT_EQ(done == total, error.empty()) << error;
    forever += error.find("waits forever") != error.npos;
  }
  EXPECT_GT(forever, 50);
}
