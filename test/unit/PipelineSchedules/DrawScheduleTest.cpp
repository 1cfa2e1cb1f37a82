//===- DrawScheduleTest.cpp - Pictures of schedules -----------------------===//

#include "shardc/PipelineSchedules/DrawSchedule.h"
#include "shardc/PipelineSchedules/ScheduleText.h"

#include <gtest/gtest.h>

using namespace shardc;

namespace {

/// The picture of a schedule by name, or of a text.
std::string draw(llvm::StringRef schedule, int ranks, int chunks,
                 int microbatches, size_t columns = 120,
                 const std::vector<StageTimes> &given = {}) {
  PipelineSchedule made = llvm::cantFail(
      getPipelineSchedule(schedule, "a.csv", ranks, chunks, microbatches));
  std::vector<StageTimes> times = given;
  times.resize(made.getNumStages(), {1, 1, 1});
  return drawSchedule(made, simulateSchedule(made, times), columns);
}

} // namespace

TEST(DrawSchedule, ALineForEachRank) {
  EXPECT_EQ(draw("1f1b", 2, 1, 2), "rank 0  F0 F1 ......B0--- ...B1---\n"
                                   "rank 1  ...F0 B0--- F1 B1--- ......\n");
  EXPECT_EQ(draw("zero-bubble", 2, 1, 2), "rank 0  F0 F1 ...I0 W0 I1 W1\n"
                                          "rank 1  ...F0 I0 F1 I1 W0 W1\n");
}

TEST(DrawSchedule, ALineForEachStageOfARank) {
  EXPECT_EQ(draw("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", 2, 2, 1),
            "rank 0  stage 0  F0 ......         ............B0---\n"
            "        stage 3     ......F0 B0--- ............\n"
            "rank 1  stage 1  ...F0    .........      B0--- ......\n"
            "        stage 2  ...   F0 .........B0---       ......\n");
}

TEST(DrawSchedule, TasksThatAreTooNarrow) {
  // Two columns for a unit of time, then one, then less.
  EXPECT_EQ(draw("1f1b", 2, 1, 2, 18), "rank 0  F0F1....B0- ..B1-\n"
                                       "rank 1  ..F0B0- F1B1- ....\n");
  EXPECT_EQ(draw("1f1b", 2, 1, 2, 9), "rank 0  FF..B0.B1\n"
                                      "rank 1  .FB0FB1..\n");
  EXPECT_EQ(draw("1f1b", 1, 1, 3, 3), "rank 0  BBB\n");
  EXPECT_EQ(draw("1f1b", 1, 1, 3, 1), "rank 0  B\n");
}

TEST(DrawSchedule, LongerLabels) {
  // "F10" has the room that "F1" has with a space.
  std::string text = draw("gpipe", 1, 1, 11, 400);
  EXPECT_EQ(text.substr(0, 28), "rank 0  F0- F1- F2- F3- F4- ");
  EXPECT_NE(text.find(" F10 B0----- B1----- "), text.npos);
}

TEST(DrawSchedule, StagesDiffer) {
  EXPECT_EQ(draw("gpipe", 2, 1, 1, 120, {{1, 1, 1}, {2, 1, 1}}),
            "rank 0  F0 ............B0---\n"
            "rank 1  ...F0--- B0--- ......\n");
}

TEST(DrawSchedule, NoTime) {
  EXPECT_EQ(draw("gpipe", 2, 1, 1, 120, {{0, 0, 0}, {0, 0, 0}}),
            "rank 0\nrank 1\n");
}
