//===- AccessesTest.cpp - The memory that commands read and write ---------===//

#include "plan/Accesses.h"

#include <gtest/gtest.h>

using namespace shardc::rt;

namespace {

/// Buffers of 10 bytes, 100 bytes apart, that each run of a loop moves on
/// by 20.
ProgramSpec makeProgram() {
  ProgramSpec program;
  for (uint64_t i = 0; i < 6; ++i)
    program.buffers.push_back({i * 100, 10, DType::F32, {}, /*stride=*/20});
  program.results.push_back({"loss", /*buffer=*/4, {}, {}});
  return program;
}

/// "r0 w1": the operands of a command, in order.
std::string describeOperands(const Command &command) {
  std::string text;
  for (const Operand &operand : operandsOf(makeProgram(), command))
    text += (text.empty() ? "" : " ") +
            std::string(operand.isWrite ? "w" : "r") +
            std::to_string(operand.buffer);
  return text;
}

template <typename Operation>
Command make(Operation operation) {
  Command command{};
  command.operation = std::move(operation);
  return command;
}

GemmCommand makeGemm() {
  GemmCommand gemm{};
  gemm.a = 0, gemm.b = 1, gemm.c = 2, gemm.bias = -1;
  return gemm;
}

TEST(AccessesTest, OperandsOfEachCommand) {
  LaunchCommand launch{};
  launch.buffers = {3, 0, 2};
  launch.writes = 2;
  EXPECT_EQ(describeOperands(make(launch)), "r3 w0 w2");
  EXPECT_EQ(describeOperands(make(makeGemm())), "r0 r1 w2");
  CollectiveStartCommand start{};
  start.items = {{0, 1, 0, 0}, {2, 3, 0, 0}};
  EXPECT_EQ(describeOperands(make(start)), "r0 w1 r2 w3");
  EXPECT_EQ(describeOperands(make(CollectiveWaitCommand{0})), "");
  EXPECT_EQ(describeOperands(make(CopyCommand{5, 3})), "r5 w3");
  EXPECT_EQ(describeOperands(make(ClearCommand{4})), "w4");
  EXPECT_EQ(describeOperands(make(LoopCommand{2, 1})), "");
  EXPECT_EQ(describeOperands(make(UploadCommand{0})), "");
  EXPECT_EQ(describeOperands(make(DownloadCommand{0})), "r4");
  EXPECT_EQ(describeOperands(make(SendCommand{{2, 3}, 1, 0, 0})), "r2 r3");
  EXPECT_EQ(describeOperands(make(ReceiveCommand{{4}, 1, 0})), "w4");
}

TEST(AccessesTest, OperandsOfEpilogues) {
  GemmCommand gemm = makeGemm();
  gemm.accumulate = true;
  gemm.bias = 3;
  EXPECT_EQ(describeOperands(make(gemm)), "r0 r1 r3 w2 r2");
  gemm = makeGemm();
  gemm.columnSums = 4;
  EXPECT_EQ(describeOperands(make(gemm)), "r0 r1 w2 w4");
}

TEST(AccessesTest, OperandsOfAPart) {
  LaunchCommand launch{};
  launch.buffers = {3, 0, 2};
  launch.writes = 1;
  LaunchPart part{/*extent=*/1, /*buffers=*/{0, 2}, {}};
  std::vector<Operand> operands = operandsOf(launch, part);
  ASSERT_EQ(operands.size(), 2u);
  EXPECT_EQ(operands[0].buffer, 3u);
  EXPECT_FALSE(operands[0].isWrite);
  EXPECT_EQ(operands[1].buffer, 2u);
  EXPECT_TRUE(operands[1].isWrite);
}

TEST(AccessesTest, BytesOfAllRuns) {
  PlanSpec plan;
  std::vector<Access> accesses =
      accessesOf(plan, makeProgram(), make(CopyCommand{1, 2}), /*runs=*/3);
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_EQ(accesses[0].bytes.begin, 100u);
  EXPECT_EQ(accesses[0].bytes.end, 150u);
  EXPECT_EQ(accesses[1].buffer, 2);
  EXPECT_TRUE(accesses[1].isWrite);
}

TEST(AccessesTest, CollectivesIncludeThePadding) {
  PlanSpec plan;
  plan.alignment = 64;
  CollectiveStartCommand start{};
  start.items = {{0, 1, 0, 0}};
  std::vector<Access> accesses =
      accessesOf(plan, makeProgram(), make(start), /*runs=*/1);
  ASSERT_EQ(accesses.size(), 2u);
  EXPECT_EQ(accesses[0].bytes.end, 64u);
  EXPECT_EQ(accesses[1].bytes.end, 128u);
}

TEST(AccessesTest, UploadsWriteTheTensor) {
  PlanSpec plan;
  TensorSpec &tensor = plan.tensors.emplace_back();
  tensor.offset = 192, tensor.bytes = 32;
  std::vector<Access> accesses =
      accessesOf(plan, makeProgram(), make(UploadCommand{0}), /*runs=*/1);
  ASSERT_EQ(accesses.size(), 1u);
  EXPECT_EQ(accesses[0].bytes.begin, 192u);
  EXPECT_EQ(accesses[0].bytes.end, 224u);
  EXPECT_TRUE(accesses[0].isWrite);
  EXPECT_LT(accesses[0].buffer, 0);
}

} // namespace
