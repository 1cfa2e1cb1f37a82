//===- BarriersTest.cpp - Where workers wait for one another --------------===//

#include "exec/Barriers.h"

#include <gtest/gtest.h>
#include <random>
#include <tuple>
#include <vector>

using namespace shardc::rt;

namespace {

const char *place(int64_t byte) {
  return reinterpret_cast<const char *>(1000 + byte);
}

TEST(BarriersTest, WorkersWaitWhereTheyAccessTheSameBytes) {
  char bytes[64];
  Barriers barriers(2);
  auto step = [&](std::vector<std::tuple<int, int, bool>> accesses) {
    for (auto [worker, at, isWrite] : accesses)
      barriers.access(worker, bytes + at, 8, isWrite);
    return barriers.endStep();
  };
  EXPECT_FALSE(step({{0, 0, true}, {1, 8, true}}));
  EXPECT_FALSE(step({{0, 0, false}, {1, 8, false}})); // each its own
  EXPECT_TRUE(step({{0, 8, false}}));                 // worker 1 wrote it
  EXPECT_FALSE(step({{1, 8, false}}));                // both only read
  EXPECT_TRUE(step({{1, 4, true}}));                  // worker 0 read it
  barriers.accessAll();
  EXPECT_TRUE(step({{1, 32, false}}));
  EXPECT_FALSE(step({{1, 32, false}}));
}

TEST(BarriersTest, TooManyAccessesNeedBarriersOnBothSides) {
  Barriers barriers(2);
  auto stepOf = [&](int64_t accesses) {
    for (int64_t access = 0; access < accesses; ++access)
      barriers.access(0, place(16 * access), 8, /*isWrite=*/true);
    return barriers.endStep();
  };
  EXPECT_FALSE(stepOf(4096));
  EXPECT_TRUE(stepOf(4097));
  // Of other bytes.
  barriers.access(0, place(-64), 8, /*isWrite=*/false);
  EXPECT_TRUE(barriers.endStep());
  EXPECT_FALSE(stepOf(4096));
  // Nor are those of a step that was only tried left.
  for (int64_t access = 0; access <= 4096; ++access)
    barriers.access(1, place(-64), 8 * (access % 2 + 1), access % 3 > 0);
  EXPECT_TRUE(barriers.isNeeded());
  barriers.dropStep();
  EXPECT_FALSE(stepOf(4096));
}

TEST(BarriersTest, TasksAreSharedOutOnceInOrder) {
  for (int64_t tasks : {0, 1, 2, 3, 7, 16, 100})
    for (int workers : {1, 2, 3, 5, 8}) {
      int64_t next = 0;
      for (int worker = 0; worker < workers; ++worker) {
        TaskRange range(tasks, worker, workers);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.end - range.begin, (tasks + workers - 1) / workers);
        // The last have more.
        if (tasks > 1) {
          EXPECT_EQ(range.begin, tasks * worker / workers);
        }
        next = range.end;
      }
      EXPECT_EQ(next, tasks);
    }
}

TEST(BarriersTest, WhatIsReadAloneNeedsNone) {
  Barriers barriers(2);
  barriers.access(0, place(0), 64, /*isWrite=*/false);
  EXPECT_FALSE(barriers.endStep());
  barriers.access(1, place(0), 64, /*isWrite=*/false);
  EXPECT_FALSE(barriers.endStep());
  // Behind two readers neither may write.
  barriers.access(0, place(63), 1, /*isWrite=*/true);
  EXPECT_TRUE(barriers.endStep());
  // Behind the barrier, that byte alone has an owner.
  barriers.access(1, place(0), 63, /*isWrite=*/true);
  EXPECT_FALSE(barriers.endStep());
  barriers.access(1, place(62), 2, /*isWrite=*/false);
  EXPECT_TRUE(barriers.endStep());
}

TEST(BarriersTest, AWorkerByItselfWaitsForNobody) {
  Barriers barriers(1);
  for (bool isWrite : {true, false, true}) {
    barriers.access(0, place(0), 8, isWrite);
    EXPECT_FALSE(barriers.endStep());
  }
}

TEST(BarriersTest, AccessesOfADroppedStepAreForgotten) {
  Barriers barriers(2);
  barriers.access(0, place(0), 8, /*isWrite=*/true);
  EXPECT_FALSE(barriers.endStep());
  barriers.access(1, place(4), 8, /*isWrite=*/true);
  EXPECT_TRUE(barriers.isNeeded());
  barriers.dropStep();
  EXPECT_FALSE(barriers.endStep());
  barriers.access(0, place(8), 8, /*isWrite=*/true);
  EXPECT_FALSE(barriers.endStep());
  barriers.accessAll();
  EXPECT_TRUE(barriers.endStep());
}

/// Against a list of the workers that have read and written each byte.
TEST(BarriersTest, AreWhereAnyByteNeedsOne) {
  constexpr int workers = 3, numBytes = 96;
  std::mt19937 random(5);
  auto below = [&](int end) { return static_cast<int>(random() % end); };
  int needed = 0;
  for (int program = 0; program < 200; ++program) {
    Barriers barriers(workers);
    struct Users {
      bool reads[workers] = {}, writes[workers] = {};
    };
    std::vector<Users> bytes(numBytes);
    for (int step = 0; step < 40; ++step) {
      std::vector<Users> now(numBytes);
      for (int access = below(5); access > 0; --access) {
        const int worker = below(workers), begin = below(numBytes),
                  count = below(std::min(numBytes - begin, 12));
        const bool isWrite = below(3) == 0;
        barriers.access(worker, place(begin), count, isWrite);
        for (int byte = begin; byte < begin + count; ++byte)
          (isWrite ? now[byte].writes : now[byte].reads)[worker] = true;
      }
      bool expected = false;
      for (int byte = 0; byte < numBytes; ++byte)
        for (int mine = 0; mine < workers; ++mine)
          for (int other = 0; other < workers; ++other) {
            const Users &before = bytes[byte], &after = now[byte];
            expected |= mine != other &&
                        ((after.writes[mine] &&
                          (before.reads[other] || before.writes[other])) ||
                         (after.reads[mine] && before.writes[other]));
          }
      ASSERT_EQ(barriers.isNeeded(), expected);
      ASSERT_EQ(barriers.endStep(), expected);
      needed += expected;
      for (int byte = 0; byte < numBytes; ++byte) {
        Users &before = bytes[byte];
        if (expected)
          before = Users();
        for (int worker = 0; worker < workers; ++worker) {
          before.reads[worker] |= now[byte].reads[worker];
          before.writes[worker] |= now[byte].writes[worker];
        }
      }
    }
  }
  EXPECT_GT(needed, 1000);
  EXPECT_LT(needed, 7000);
}

} // namespace
