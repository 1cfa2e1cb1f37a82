//===- MemoryPlanTest.cpp - Packing of buffers over time ------------------===//

#include "shardc/Analysis/MemoryPlan.h"

#include <gtest/gtest.h>

#include <random>

namespace shardc {
namespace {

TEST(MemoryPlan, NothingTakesNothing) {
  MemoryPlan plan(128);
  plan.place();
  EXPECT_EQ(plan.getEnd(), 128);
  EXPECT_EQ(plan.getLowerBound(), 0);
}

TEST(MemoryPlan, PlacesAreSharedOverTime) {
  MemoryPlan plan;
  unsigned a = plan.addBuffer(100, 0, 1), b = plan.addBuffer(100, 1, 2),
           c = plan.addBuffer(100, 2, 3);
  plan.place();
  EXPECT_EQ(plan.getOffset(a), plan.getOffset(c));
  EXPECT_NE(plan.getOffset(a), plan.getOffset(b));
  EXPECT_EQ(plan.getEnd(), 256);
}

TEST(MemoryPlan, TheSmallestGapThatFitsIsTaken) {
  MemoryPlan plan;
  plan.addBuffer(640, 0, 0);
  unsigned wall = plan.addBuffer(512, 0, 2);
  plan.addBuffer(256, 2, 2);
  unsigned small = plan.addBuffer(64, 2, 2);
  plan.place();
  EXPECT_EQ(plan.getOffset(wall), 640);
  EXPECT_LT(plan.getOffset(small), 640);
  EXPECT_EQ(plan.getEnd(), 1152);
}

TEST(MemoryPlan, ARunIsOneRegion) {
  MemoryPlan plan;
  unsigned a = plan.addBuffer(100, 0, 5), b = plan.addBuffer(64, 1, 1),
           c = plan.addBuffer(4, 3, 5);
  plan.addRun({c, a, b});
  plan.place();
  EXPECT_EQ(plan.getOffset(a), plan.getOffset(c) + 64);
  EXPECT_EQ(plan.getOffset(b), plan.getOffset(a) + 128);
  EXPECT_EQ(plan.getEnd(), 256);
}

TEST(MemoryPlan, MembersOfARunKeepTheirOwnLives) {
  MemoryPlan plan;
  unsigned early = plan.addBuffer(640, 0, 1), late = plan.addBuffer(640, 2, 3);
  plan.addRun({early, late});
  unsigned other = plan.addBuffer(640, 2, 3);
  plan.place();
  EXPECT_EQ(plan.getOffset(other), plan.getOffset(early));
  EXPECT_EQ(plan.getEnd(), 1280);
}

/// Whatever is alive together lies apart, aligned, within bounds; runs hang
/// together.
TEST(MemoryPlan, RandomBuffersDoNotOverlap) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    struct Buffer {
      int64_t bytes, first, last;
    };
    int64_t base = 64 * (random() % 4);
    MemoryPlan plan(base);
    std::vector<Buffer> buffers;
    for (int i = random() % 30; i >= 0; --i) {
      int64_t first = random() % 20;
      buffers.push_back(
          {int64_t(random() % 1000), first, first + int64_t(random() % 6)});
      plan.addBuffer(buffers.back().bytes, first, buffers.back().last);
    }
    std::vector<std::vector<unsigned>> runs;
    for (unsigned i = 0; i < buffers.size();) {
      if (random() % 2) {
        ++i;
        continue;
      }
      runs.emplace_back();
      for (unsigned length = 1 + random() % 5; length > 0 && i < buffers.size();
           --length)
        runs.back().push_back(i++);
      plan.addRun(runs.back());
    }
    plan.place();
    for (const std::vector<unsigned> &run : runs)
      for (size_t i = 1; i < run.size(); ++i)
        EXPECT_EQ(plan.getOffset(run[i]),
                  plan.getOffset(run[i - 1]) +
                      alignBytes(buffers[run[i - 1]].bytes));
    EXPECT_GE(plan.getEnd() - base, plan.getLowerBound());
    for (size_t i = 0; i < buffers.size(); ++i) {
      int64_t offset = plan.getOffset(i);
      EXPECT_EQ(offset % bufferAlignment, 0);
      EXPECT_GE(offset, base);
      EXPECT_LE(offset + buffers[i].bytes, plan.getEnd());
      for (size_t j = 0; j < i; ++j) {
        if (buffers[j].last < buffers[i].first ||
            buffers[i].last < buffers[j].first)
          continue;
        EXPECT_TRUE(offset + buffers[i].bytes <= plan.getOffset(j) ||
                    plan.getOffset(j) + buffers[j].bytes <= offset)
            << i << " and " << j;
      }
    }
  }
}

} // namespace
} // namespace shardc
