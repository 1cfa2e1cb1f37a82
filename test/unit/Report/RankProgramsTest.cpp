//===- RankProgramsTest.cpp - The time of ranks against sums by hand ------===//

#include "shardc/Report/RankPrograms.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Report/TimeEstimate.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace mlir;

namespace {

class RankProgramsTest : public testing::Test {
protected:
  RankProgramsTest() : context(getRegistry()) {
    machine.name = "slow";
    machine.flopsPerSecond[unsigned(ComputeType::F32)] = 10;
    machine.memoryBytesPerSecond = 1e9;
    machine.defaultLink = {8, 0.5};
  }

  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    registerShardcDialects(registry);
    return registry;
  }

  /// The programs of two ranks with these bodies, on one tensor of 8 elements.
  SmallVector<func::FuncOp> parse(StringRef first, StringRef second) {
    std::string text = "module attributes {shardc.pipeline = "
                       "#shardc.pipeline<axis = \"stage\", schedule = "
                       "\"1f1b\">} {\nshardc.mesh @mesh <[\"stage\" = 2]>\n";
    // Not in the order of ranks.
    for (auto [rank, body] : {std::pair(1, second), std::pair(0, first)})
      text += "func.func @step." + std::to_string(rank) +
              "(%x: tensor<8xf32>) attributes {shardc.program = \"step\", "
              "shardc.pipeline_rank = " +
              std::to_string(rank) + " : i64} {\n" + body.str() + "return\n}\n";
    module = parseSourceString<ModuleOp>(text + "}", &context);
    EXPECT_TRUE(module) << text;
    return getRankPrograms(*module, "step");
  }

  static std::string send(int to, int message, StringRef value) {
    std::string number = std::to_string(message);
    return "%s" + number + " = shardc.collective_start(" + value.str() +
           ") : tensor<8xf32> {\n^bb0(%a: tensor<8xf32>):\nshardc.send %a "
           "to " +
           std::to_string(to) + " message " + number +
           " : tensor<8xf32>\n}\nshardc.collective_wait %s" + number +
           " : ()\n";
  }

  static std::string startReceive(int from, int message) {
    std::string number = std::to_string(message);
    return "%h" + number +
           " = shardc.collective_start() : () {\n%r = shardc.receive from " +
           std::to_string(from) + " message " + number +
           " : tensor<8xf32>\nshardc.yield %r : tensor<8xf32>\n}\n";
  }

  static std::string receive(int message) {
    std::string number = std::to_string(message);
    return "%m" + number + " = shardc.collective_wait %h" + number +
           " : tensor<8xf32>\n";
  }

  /// Takes 0.8 s.
  static std::string exp(StringRef result, StringRef operand) {
    return (result + " = shardc.exp " + operand + " : tensor<8xf32>\n").str();
  }

  double estimate(ArrayRef<func::FuncOp> ranks) {
    return estimateSeconds(ranks, machine);
  }

  MLIRContext context;
  Machine machine;
  OwningOpRef<ModuleOp> module;
};

} // namespace

/// A message of 32 bytes.
static constexpr double crossing = 0.5 + 32 / 8.0;

TEST_F(RankProgramsTest, AreInTheOrderOfRanks) {
  auto ranks = parse("", "");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].getName(), "step.0");
  EXPECT_EQ(ranks[1].getName(), "step.1");
  EXPECT_TRUE(getRankPrograms(*module, "other").empty());
  EXPECT_EQ(estimate(ranks), 0);
}

TEST_F(RankProgramsTest, OnAComputerRanksTakeTurns) {
  machine.isShared = true;
  machine.shareAmong(2);
  ComputerRates &rates = machine.computer.emplace();
  rates.commandSeconds = 0.25;
  rates.memory = {{1, 64}};
  auto kernel = [](StringRef result, StringRef operand) {
    return (result + " = shardc.kernel(" + operand +
            ") : (tensor<8xf32>) -> tensor<8xf32> {\n^bb0(%a: "
            "tensor<8xf32>):\n" +
            exp("%e", "%a") + "shardc.yield %e : tensor<8xf32>\n}\n")
        .str();
  };
  auto ranks = parse(kernel("%0", "%x") + send(1, 0, "%0"),
                     startReceive(0, 0) + receive(0) + kernel("%1", "%m0") +
                         kernel("%2", "%1"));
  // 8 exponentials of 32 FLOPs at 10 FLOP/s, and 64 bytes; the message costs
  // nothing.
  EXPECT_DOUBLE_EQ(estimate(ranks), 3 * (32 * 0.8 + 0.25 + 1));
}

TEST_F(RankProgramsTest, ReceivesWaitAndSendsDoNot) {
  // Rank 0 computes on while the message crosses; rank 1 works before it waits.
  auto ranks = parse(exp("%0", "%x") + send(1, 0, "%0") + exp("%1", "%0"),
                     startReceive(0, 0) + exp("%0", "%x") + receive(0) +
                         exp("%1", "%m0"));
  EXPECT_NEAR(estimate(ranks), 0.8 + crossing + 0.8, 1e-6);
  // A rank that is late finds the message there.
  std::string late;
  for (std::string number : {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"})
    late += exp("%" + number, "%x");
  ranks = parse(exp("%0", "%x") + send(1, 0, "%0"),
                startReceive(0, 0) + late + receive(0) + exp("%10", "%m0"));
  EXPECT_NEAR(estimate(ranks), 11 * 0.8, 1e-6);
}

TEST_F(RankProgramsTest, RanksWaitForTheirInputs) {
  auto ranks = parse(exp("%0", "%x"), exp("%0", "%x"));
  machine.hostBytesPerSecond = 1;
  EXPECT_NEAR(estimate(ranks), 0.8, 1e-6);
  ranks[1].setArgAttr(0, "shardc.role",
                      InputAttr::get(&context, StringAttr::get(&context, "x")));
  EXPECT_DOUBLE_EQ(estimate(ranks), 32);
}

TEST_F(RankProgramsTest, MessagesGoBackAndForth) {
  auto ranks = parse(exp("%0", "%x") + send(1, 0, "%0") + startReceive(1, 1) +
                         receive(1) + exp("%1", "%m1"),
                     startReceive(0, 0) + receive(0) + exp("%0", "%m0") +
                         send(0, 1, "%0"));
  EXPECT_NEAR(estimate(ranks), 3 * 0.8 + 2 * crossing, 1e-6);
}

TEST_F(RankProgramsTest, RanksMeetAtReductionsOverThePipeline) {
  std::string reduce = "%r = shardc.all_reduce sum %0 over @mesh[\"stage\"] : "
                       "(tensor<8xf32>) -> tensor<8xf32>\n"
                       "%q = shardc.all_reduce sum %r over @mesh[\"stage\"] : "
                       "(tensor<8xf32>) -> tensor<8xf32>\n";
  auto ranks =
      parse(exp("%0", "%x") + reduce,
            exp("%1", "%x") + exp("%0", "%1") + reduce + exp("%2", "%q"));
  Operation *op = nullptr;
  ranks[0].walk([&](AllReduceOp found) { op = found; });
  double seconds = getCollectiveSeconds(machine, op);
  EXPECT_GT(seconds, 0);
  EXPECT_NEAR(estimate(ranks), 2 * 0.8 + 2 * seconds + 0.8, 1e-6);
}
