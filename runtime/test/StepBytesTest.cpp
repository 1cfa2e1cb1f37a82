//===- StepBytesTest.cpp - What tiles of a kernel touch -------------------===//

#include "exec/PreparedSteps.h"

#include <gtest/gtest.h>

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

} // namespace
