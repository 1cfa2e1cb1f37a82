//===- StepBytesTest.cpp - Tiles of kernels and what they touch -----------===//

#include "exec/CallOrders.h"
#include "exec/PreparedSteps.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace shardc::rt;

namespace {

/// Two parts of 4 and 3 iterations: the first goes down operand 0 and reads all
/// of operand 1, the second goes down operand 1 alone.
Step makeStep() {
  Step step{};
  step.kind = Step::Kind::Launch;
  step.operands = 2;
  step.accesses = {{100, true}, {60, false}};
  step.first = 10;
  step.last = 17;
  step.grain = 2;
  step.tiles = 4;
  step.parts = {{4, {25, 0}}, {3, {std::nullopt, 20}}};
  return step;
}

std::pair<uint64_t, uint64_t> bytesOf(const Step &step, int64_t operand,
                                      int64_t begin, int64_t end) {
  Step::Bytes bytes = step.bytesOf(operand, begin, end);
  return {bytes.begin, bytes.end};
}

using Range = std::pair<uint64_t, uint64_t>;

TEST(StepBytesTest, TilesTouchTheBytesOfTheirIterations) {
  Step step = makeStep();
  EXPECT_EQ(bytesOf(step, 0, 0, 1), Range(0, 50));
  EXPECT_EQ(bytesOf(step, 0, 1, 2), Range(50, 100));
  EXPECT_EQ(bytesOf(step, 0, 0, 4), Range(0, 100));
  EXPECT_EQ(bytesOf(step, 1, 2, 3), Range(0, 40));
  // The last tile has one iteration.
  EXPECT_EQ(bytesOf(step, 1, 3, 4), Range(40, 60));
}

TEST(StepBytesTest, NothingIsTouchedOfAnOperandOfOtherParts) {
  Step step = makeStep();
  Step::Bytes bytes = step.bytesOf(0, 2, 4);
  EXPECT_EQ(bytes.begin, bytes.end);
}

TEST(StepBytesTest, OnePartThatTouchesAnyIsEnough) {
  EXPECT_EQ(bytesOf(makeStep(), 1, 1, 2), Range(0, 60));
  EXPECT_EQ(bytesOf(makeStep(), 1, 1, 4), Range(0, 60));
}

TEST(StepBytesTest, WithoutPartsAllIsTouched) {
  Step step = makeStep();
  step.parts.clear();
  EXPECT_EQ(bytesOf(step, 0, 0, 1), Range(0, 100));
}

/// Calls of a kernel on an operand that is read row by row and one that is
/// written so; `inputs` and `outputs` by call.
Step makeCalls(int64_t tiles, std::vector<int *> inputs,
               std::vector<int *> outputs) {
  Step step{};
  step.kind = Step::Kind::Launch;
  step.operands = 2;
  step.accesses = {{100, false}, {100, true}};
  step.last = tiles;
  step.tiles = tiles;
  step.parts = {{tiles, {10, 10}}};
  for (size_t call = 0; call < inputs.size(); ++call) {
    step.calls.push_back({nullptr, step.table.size()});
    step.table.insert(step.table.end(), {inputs[call], outputs[call]});
  }
  return step;
}

TEST(CallOrdersTest, EveryTileIsATaskOnce) {
  int place;
  for (int64_t calls : {1, 2, 6, 8})
    for (int64_t tiles : {1, 2, 5})
      for (int64_t together = 1; together <= calls; ++together) {
        if (calls % together != 0)
          continue;
        const std::vector<int *> places(calls, &place);
        Step step = makeCalls(tiles, places, places);
        step.together = together;
        for (int64_t chunk : {1, 2, 3, 7, 100}) {
          std::vector<std::pair<int64_t, int64_t>> visited;
          for (int64_t task = 0; task < step.numTasks(); task += chunk)
            step.forEachCall(task, std::min(step.numTasks(), task + chunk),
                             [&](int64_t call, int64_t begin, int64_t end) {
                               EXPECT_LT(begin, end);
                               // The first task of those of one chunk is
                               // visited first.
                               if (chunk == 1) {
                                 const int64_t group = call / together;
                                 EXPECT_EQ(task,
                                           (group * tiles + begin) * together +
                                               call % together);
                               }
                               for (; begin < end; ++begin)
                                 visited.push_back({call, begin});
                             });
          std::sort(visited.begin(), visited.end());
          ASSERT_EQ(visited.size(), size_t(calls * tiles));
          for (int64_t i = 0; i < calls * tiles; ++i)
            EXPECT_EQ(visited[i], std::pair(i / tiles, i % tiles));
        }
      }
}

TEST(CallOrdersTest, CallsThatReadTheSameRowsAreTakenTogether) {
  int a[4], b[4], c[4];
  auto together = [](int workers, Step step) {
    CallOrders(workers).choose(step);
    return step.together;
  };
  const std::vector<int *> out{&b[0], &b[1], &b[2], &b[3]};
  const std::vector<int *> same(4, a), pairs{&a[0], &a[0], &a[1], &a[1]},
      own{&a[0], &a[1], &a[2], &a[3]}, mixed{&a[0], &a[0], &a[1], &a[2]};
  EXPECT_EQ(together(2, makeCalls(8, same, out)), 4);
  EXPECT_EQ(together(2, makeCalls(1, same, out)), 1);
  EXPECT_EQ(together(2, makeCalls(8, own, out)), 1);
  EXPECT_EQ(together(2, makeCalls(8, mixed, out)), 1);
  // Two workers have a pair each.
  EXPECT_EQ(together(2, makeCalls(8, pairs, out)), 1);
  EXPECT_EQ(together(3, makeCalls(8, pairs, out)), 2);
  // Not of what is read as a whole, as weights are.
  Step weights = makeCalls(8, same, out);
  weights.parts[0].bytesPerIteration[0] = 0;
  EXPECT_EQ(together(2, weights), 1);

  // Who reads the results goes the same way, until they are written anew.
  const std::vector<int *> results{&c[0], &c[1], &c[2], &c[3]};
  CallOrders orders(2);
  Step first = makeCalls(8, same, out), second = makeCalls(8, out, results),
       third = makeCalls(8, own, out), fourth = makeCalls(8, out, results);
  for (Step *step : {&first, &second, &third, &fourth})
    orders.choose(*step);
  EXPECT_EQ(second.together, 4);
  EXPECT_EQ(third.together, 1);
  EXPECT_EQ(fourth.together, 1);
}

} // namespace
