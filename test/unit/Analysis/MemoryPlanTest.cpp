//===- MemoryPlanTest.cpp - Packing of buffers over time ------------------===//

#include "shardc/Analysis/MemoryPlan.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// The offset of a run by looking at every byte range between the buffers
/// placed before it: the tightest gap, the lowest of equal ones, else the end
/// of all that lives at the same time.
struct Placed {
  int64_t bytes, first, last, offset;
};
int64_t findOffset(const std::vector<Placed> &run,
                   const std::vector<Placed> &placed, int64_t base) {
  auto fits = [&](int64_t offset) {
    for (const Placed &buffer : run) {
      for (const Placed &other : placed)
        if (other.last >= buffer.first && buffer.last >= other.first &&
            other.offset < offset + buffer.bytes &&
            offset < other.offset + other.bytes)
          return false;
      offset += buffer.bytes;
    }
    return true;
  };
  int64_t highest = base;
  for (const Placed &other : placed)
    highest = std::max(highest, other.offset + other.bytes);
  int64_t best = highest, bestGap = -1;
  for (int64_t offset = base; offset <= highest; offset += bufferAlignment) {
    if (!fits(offset) || (offset > base && fits(offset - bufferAlignment)))
      continue;
    int64_t last = offset;
    while (last <= highest && fits(last + bufferAlignment))
      last += bufferAlignment;
    if (last > highest)
      return bestGap >= 0 ? best : offset;
    if (bestGap < 0 || last - offset < bestGap) {
      best = offset;
      bestGap = last - offset;
    }
  }
  return best;
}

TEST(MemoryPlan, TheTightestGapIsFoundAmongMany) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    int64_t base = bufferAlignment * (random() % 3);
    MemoryPlan plan(base);
    std::vector<std::vector<Placed>> runs;
    std::vector<Placed> all;
    int64_t numSteps = 1 + random() % 40;
    for (int run = random() % 25; run >= 0; --run) {
      runs.emplace_back();
      std::vector<unsigned> numbers;
      for (int length = random() % 3 ? 1 : 1 + random() % 4; length; --length) {
        int64_t first = random() % numSteps;
        int64_t last = std::min<int64_t>(first + random() % 12, numSteps - 1);
        int64_t bytes = bufferAlignment * (1 + random() % 6);
        runs.back().push_back({bytes, first, last, 0});
        numbers.push_back(plan.addBuffer(bytes, first, last));
      }
      if (numbers.size() > 1)
        plan.addRun(numbers);
    }
    plan.place();
    // The largest first; of equal runs the one that was added first.
    std::vector<std::pair<int64_t, unsigned>> order;
    std::vector<unsigned> begins;
    unsigned begin = 0;
    for (const std::vector<Placed> &run : runs) {
      int64_t bytes = 0;
      for (const Placed &buffer : run)
        bytes += buffer.bytes;
      order.emplace_back(-bytes, begins.size());
      begins.push_back(begin);
      begin += run.size();
    }
    std::sort(order.begin(), order.end());
    std::vector<Placed> placed;
    for (auto [bytes, index] : order) {
      int64_t offset = findOffset(runs[index], placed, base);
      for (size_t i = 0; i < runs[index].size(); ++i) {
        Placed buffer = runs[index][i];
        buffer.offset = offset;
        offset += buffer.bytes;
        EXPECT_EQ(plan.getOffset(begins[index] + i), buffer.offset);
        placed.push_back(buffer);
      }
    }
  }
}

/// Activations, from the forward to the backward pass, all overlap: what is
/// placed is not looked at buffer by buffer. Such plans took time in proportion
/// to the square of the layers.
TEST(MemoryPlan, NestedLivesOfManyLayers) {
  constexpr int64_t numLayers = 100'000;
  MemoryPlan plan;
  for (int64_t layer = 0; layer < numLayers; ++layer) {
    plan.addBuffer(64, layer, 4 * numLayers - layer);
    plan.addBuffer(128, 2 * numLayers + layer, 2 * numLayers + layer + 1);
  }
  plan.place();
  EXPECT_EQ(plan.getEnd(), plan.getLowerBound());
}

} // namespace
} // namespace shardc
