//===- StageCutTest.cpp - Cuts against all cuts ---------------------------===//

#include "shardc/PipelineSchedules/StageCut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

using namespace shardc;
using testing::ElementsAre;

namespace {

PipelineSchedule makeNamed(llvm::StringRef name, int64_t ranks, int64_t chunks,
                           int64_t microbatches) {
  return llvm::cantFail(
      makePipelineSchedule(name, ranks, chunks, microbatches));
}

double measure(llvm::ArrayRef<OpTimes> ops, const PipelineSchedule &schedule,
               const StageCut &cut) {
  return simulateSchedule(schedule, getStageTimes(ops, cut)).makespan;
}

void forEachCut(llvm::ArrayRef<OpTimes> ops, const PipelineSchedule &schedule,
                llvm::function_ref<void(const StageCut &)> visit) {
  StageCut cut;
  std::function<void()> extend = [&] {
    if (cut.size() + 1 == static_cast<size_t>(schedule.getNumStages())) {
      cut.push_back(ops.size());
      visit(cut);
      cut.pop_back();
      return;
    }
    for (size_t end = cut.empty() ? 1 : cut.back() + 1; end < ops.size();
         ++end) {
      cut.push_back(end);
      extend();
      cut.pop_back();
    }
  };
  extend();
}

/// The shortest step of all cuts.
double tryAll(llvm::ArrayRef<OpTimes> ops, const PipelineSchedule &schedule) {
  double best = std::numeric_limits<double>::infinity();
  forEachCut(ops, schedule, [&](const StageCut &cut) {
    best = std::min(best, measure(ops, schedule, cut));
  });
  return best;
}

} // namespace

TEST(StageCut, EqualOpsMakeEqualStages) {
  std::vector<OpTimes> ops(12, {1, 1, 1, 0, 0});
  EXPECT_THAT(findStageCut(ops, makeNamed("1f1b", 4, 1, 8)),
              ElementsAre(3, 6, 9, 12));
  // Ranks are equal, which stages need not be where there are several of them.
  PipelineSchedule interleaved = makeNamed("interleaved", 2, 2, 8);
  EXPECT_LE(measure(ops, interleaved, findStageCut(ops, interleaved)),
            measure(ops, interleaved, {3, 6, 9, 12}));
}

TEST(StageCut, TimesOfStages) {
  std::vector<OpTimes> ops = {
      {1, 2, 3, 4, 5}, {6, 7, 8, 9, 10}, {11, 12, 13, 14, 15}};
  std::vector<StageTimes> stages = getStageTimes(ops, {2, 3});
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].forward, 7);
  EXPECT_EQ(stages[0].inputGradient, 9);
  EXPECT_EQ(stages[0].weightGradient, 11);
  EXPECT_EQ(stages[0].sendForward, 9);
  EXPECT_EQ(stages[0].sendBackward, 0);
  EXPECT_EQ(stages[1].sendForward, 0);
  EXPECT_EQ(stages[1].sendBackward, 10);
}

TEST(StageCut, LongTransfersAreAvoided) {
  std::vector<OpTimes> ops(4, {1, 1, 1, 0, 0});
  ops[1].sendForward = ops[1].sendBackward = 100;
  StageCut cut = findStageCut(ops, makeNamed("1f1b", 2, 1, 4));
  EXPECT_NE(cut[0], 2u);
}

TEST(StageCut, CutsAreFoundOnce) {
  std::vector<OpTimes> ops(12, {1, 1, 1, 0, 0});
  StageCutCache cuts;
  for (int run = 0; run < 2; ++run)
    for (const char *name : {"1f1b", "zero-bubble"})
      for (int microbatches : {4, 8})
        for (double forward : {1.0, 5.0}) {
          ops[3].forward = forward;
          PipelineSchedule schedule = makeNamed(name, 4, 1, microbatches);
          EXPECT_EQ(cuts.find(ops, schedule), findStageCut(ops, schedule));
        }
}

TEST(StageCut, AsManyOpsAsStages) {
  std::vector<OpTimes> ops(4, {1, 1, 1, 1, 1});
  EXPECT_THAT(findStageCut(ops, makeNamed("gpipe", 4, 1, 2)),
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(findStageCut(ops, makeNamed("gpipe", 1, 1, 2)), ElementsAre(4));
}

/// Within 2 % of the best of all cuts, for every schedule. `mostOps` is for
/// models of up to three stages; larger ones have a third of it beyond their
/// stages.
static void compareWithAllCuts(int trials, int mostOps) {
  unsigned state = 3;
  auto draw = [&](int below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 8) % below);
  };
  for (int trial = 0; trial < trials; ++trial) {
    int ranks = 2 + draw(3);
    llvm::StringRef name = getPipelineScheduleNames()[draw(4)];
    int chunks = name == "interleaved" ? 1 + draw(2) : 1;
    int numStages = ranks * chunks;
    PipelineSchedule schedule =
        makeNamed(name, ranks, chunks, ranks * (1 + draw(4)));
    std::vector<OpTimes> ops(
        numStages + draw(numStages > 4 ? mostOps / 3 : mostOps - numStages));
    for (OpTimes &op : ops) {
      double work = 1 + draw(20);
      op = {work, work * draw(3) / 2, work * draw(3) / 2, draw(10) * 0.1,
            draw(10) * 0.1};
    }
    double found = measure(ops, schedule, findStageCut(ops, schedule));
    EXPECT_LE(found, tryAll(ops, schedule) * 1.02)
        << trial << ' ' << name.str() << ' ' << ops.size() << " ops, " << ranks
        << " ranks, " << chunks << " chunks";
  }
}

TEST(StageCut, RandomModelsAgainstAllCuts) { compareWithAllCuts(300, 16); }

/// So many cuts that not all of them are simulated.
TEST(StageCut, LargerModelsAgainstAllCuts) { compareWithAllCuts(60, 36); }

/// The search ends whatever the number of stages, with a cut that is about as
/// good as one of equal stages.
TEST(StageCut, ManyStagesTakeBoundedTime) {
  for (int64_t ranks : {32, 64}) {
    PipelineSchedule schedule = makeNamed("1f1b", ranks, 1, 4 * ranks);
    std::vector<OpTimes> ops(192, {1, 1, 1, 0.01, 0.01});
    StageCut equal;
    for (int64_t stage = 1; stage <= ranks; ++stage)
      equal.push_back(stage * ops.size() / ranks);
    EXPECT_LE(measure(ops, schedule, findStageCut(ops, schedule)),
              measure(ops, schedule, equal));
  }
}

/// With limits, the best of the cuts that keep them; without such a cut, one
/// that exceeds them as little as any.
TEST(StageCut, LimitsAgainstAllCuts) {
  unsigned state = 7;
  auto draw = [&](int below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>((state >> 8) % below);
  };
  int numLimited = 0, numWithout = 0;
  for (int trial = 0; trial < 200; ++trial) {
    int ranks = 2 + draw(3), chunks = 1 + draw(2);
    PipelineSchedule schedule = makeNamed(chunks > 1 ? "interleaved" : "1f1b",
                                          ranks, chunks, ranks * 2);
    std::vector<OpTimes> ops(ranks * chunks + draw(6));
    CutLimits limits;
    for (OpTimes &op : ops) {
      double work = 1 + draw(20);
      op = {work, work, work, 0.1, 0.1};
      limits.weights.push_back(1 + draw(9));
    }
    limits.most.assign(ranks, std::numeric_limits<double>::infinity());
    limits.most[draw(ranks)] = 2 + draw(20);
    auto getExcess = [&](const StageCut &cut) {
      double excess = 0;
      std::vector<double> sums = getRankWeights(limits.weights, cut, schedule);
      for (int rank = 0; rank < ranks; ++rank)
        excess += std::max(sums[rank] / limits.most[rank] - 1, 0.0);
      return excess;
    };
    std::pair<double, double> best = {std::numeric_limits<double>::infinity(),
                                      0};
    double unlimited = std::numeric_limits<double>::infinity();
    forEachCut(ops, schedule, [&](const StageCut &cut) {
      double seconds = measure(ops, schedule, cut);
      best = std::min(best, {getExcess(cut), seconds});
      unlimited = std::min(unlimited, seconds);
    });
    StageCut cut = findStageCut(ops, schedule, limits);
    EXPECT_EQ(getExcess(cut), best.first) << trial;
    EXPECT_EQ(measure(ops, schedule, cut), best.second) << trial;
    numLimited += best.first == 0 && best.second > unlimited;
    numWithout += best.first > 0;
  }
  // Of all three kinds there are some.
  EXPECT_GT(numLimited, 20);
  EXPECT_GT(numWithout, 20);
  EXPECT_LT(numLimited + numWithout, 180);
}
