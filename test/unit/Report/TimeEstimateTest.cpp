//===- TimeEstimateTest.cpp - Seconds against sums by hand ----------------===//

#include "shardc/Report/TimeEstimate.h"
#include "shardc/Pipelines/Phases.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace shardc;
using namespace mlir;

namespace {

class TimeEstimateTest : public testing::Test {
protected:
  TimeEstimateTest() : context(getRegistry()) {
    machine.name = "slow";
    machine.flopsPerSecond[unsigned(ComputeType::F64)] = 1;
    machine.flopsPerSecond[unsigned(ComputeType::F32)] = 10;
    machine.flopsPerSecond[unsigned(ComputeType::TF32)] = 1000;
    machine.flopsPerSecond[unsigned(ComputeType::BF16)] = 4000;
    machine.f32MatmulType = ComputeType::TF32;
    machine.memoryBytes = 1e6;
    machine.memoryBytesPerSecond = 100;
    machine.defaultLink = {8, 0.5};
  }

  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    registerShardcDialects(registry);
    return registry;
  }

  /// The estimate for the function in `body` over a mesh of four.
  TimeEstimate estimate(llvm::StringRef function) {
    std::string text =
        ("shardc.mesh @mesh <[\"data\" = 4]>\n" + function).str();
    modules.push_back(parseSourceString<ModuleOp>(text, &context));
    EXPECT_TRUE(modules.back()) << text;
    return estimateTime(*modules.back()->getOps<func::FuncOp>().begin(),
                        machine);
  }

  MLIRContext context;
  Machine machine;
  std::vector<OwningOpRef<ModuleOp>> modules;
};

} // namespace

static constexpr const char *step = R"(
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>)
    -> (tensor<4x2xf32>, tensor<4x8xf32>) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0]
      : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
  %1 = shardc.exp %0 : tensor<4x2xf32>
  %2 = shardc.all_reduce sum %1 over @mesh["data"]
      : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = shardc.exp %x : tensor<4x8xf32>
  return %2, %3 : tensor<4x2xf32>, tensor<4x8xf32>
})";

TEST_F(TimeEstimateTest, AddsUp) {
  TimeEstimate time = estimate(step);
  // A GEMM of 2·4·2·8 at 1000, 8 and 32 elements at 10.
  EXPECT_DOUBLE_EQ(time.computeSeconds, 0.128 + 0.8 + 3.2);
  // x, w, %0; %0, %1; x, %3.
  EXPECT_DOUBLE_EQ(time.memorySeconds,
                   (4 * (32 + 16 + 8) + 4 * (8 + 8) + 4 * (32 + 32)) / 100.0);
  // Four steps, and 2·3/4 of 32 bytes.
  EXPECT_DOUBLE_EQ(time.communicationSeconds, 4 * 0.5 + 48 / 8.0);
  EXPECT_DOUBLE_EQ(time.getSeconds(), 4.128 + 5.44 + 8);
}

TEST_F(TimeEstimateTest, CollectivesOverlapWithWhatDoesNotNeedThem) {
  // The all-reduce starts after the GEMM (0.128 + 2.24) and the first exp
  // (0.8 + 0.64) and takes 8; the second exp (3.2 + 2.56) is beside it.
  EXPECT_DOUBLE_EQ(estimate(step).overlappedSeconds,
                   0.128 + 2.24 + 0.8 + 0.64 + 8);
  machine.isShared = true;
  TimeEstimate time = estimate(step);
  EXPECT_DOUBLE_EQ(time.overlappedSeconds, time.getSeconds());
}

TEST_F(TimeEstimateTest, KernelsAreLookedInto) {
  TimeEstimate fused = estimate(R"(
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>)
    -> (tensor<4x2xf32>, tensor<4x8xf32>) {
  %0:2 = shardc.kernel(%x, %w) : (tensor<4x8xf32>, tensor<8x2xf32>)
      -> (tensor<4x2xf32>, tensor<4x8xf32>) {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
    %2 = shardc.exp %1 : tensor<4x2xf32>
    %3 = shardc.exp %a : tensor<4x8xf32>
    shardc.yield %2, %3 : tensor<4x2xf32>, tensor<4x8xf32>
  }
  %4 = shardc.all_reduce sum %0#0 over @mesh["data"]
      : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %4, %0#1 : tensor<4x2xf32>, tensor<4x8xf32>
})");
  TimeEstimate time = estimate(step);
  EXPECT_DOUBLE_EQ(fused.computeSeconds, time.computeSeconds);
  EXPECT_DOUBLE_EQ(fused.memorySeconds, time.memorySeconds);
  EXPECT_DOUBLE_EQ(fused.communicationSeconds, time.communicationSeconds);
}

TEST_F(TimeEstimateTest, FusedValuesAreNotInMemory) {
  // Only x and the result are: 8 elements of each.
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c = shardc.constant dense<2.0> : tensor<8xf32>
  %0 = shardc.exp %x : tensor<8xf32>
  %1 = shardc.mul %0, %c : tensor<8xf32>
  %2 = shardc.neg %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
})");
  EXPECT_DOUBLE_EQ(time.memorySeconds, 64 / 100.0);
  EXPECT_DOUBLE_EQ(time.computeSeconds, 3 * 8 / 10.0);
}

TEST_F(TimeEstimateTest, OpsOfAPartShareWhatTheyLoad) {
  // x once for all three, %1 stored and not loaded again, %2 stored.
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = shardc.exp %x : tensor<8xf32>
  %1 = shardc.mul %x, %x : tensor<8xf32>
  %2 = shardc.add %0, %1 : tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
})");
  EXPECT_DOUBLE_EQ(time.memorySeconds, 3 * 32 / 100.0);
}

TEST_F(TimeEstimateTest, AnotherPartReadsFromMemory) {
  // x, and %0 once written and once read, and the result.
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = shardc.exp %x {shardc.part = #shardc.part<forward>} : tensor<8xf32>
  %1 = shardc.neg %0 {shardc.part = #shardc.part<backward>} : tensor<8xf32>
  return %1 : tensor<8xf32>
})");
  EXPECT_DOUBLE_EQ(time.memorySeconds, 4 * 32 / 100.0);
}

TEST_F(TimeEstimateTest, RatesFollowTheElementType) {
  auto gemm = [&](const std::string &type, const std::string &sum) {
    std::string matrix = "tensor<2x2x" + type + ">";
    std::string result = "tensor<2x2x" + sum + ">";
    return estimate("func.func @f(%x: " + matrix + ") -> " + result +
                    " {\n  %0 = shardc.dot_general %x, %x contracting = [1] x "
                    "[0] : " +
                    matrix + ", " + matrix + " -> " + result +
                    "\n  return %0 : " + result + "\n}")
        .computeSeconds;
  };
  EXPECT_DOUBLE_EQ(gemm("f64", "f64"), 16);
  EXPECT_DOUBLE_EQ(gemm("f32", "f32"), 16 / 1000.0);
  EXPECT_DOUBLE_EQ(gemm("bf16", "bf16"), 16 / 4000.0);
  EXPECT_DOUBLE_EQ(gemm("bf16", "f32"), 16 / 4000.0);
  // Other computeType on bf16 is that of f32.
  EXPECT_DOUBLE_EQ(estimate(R"(
func.func @f(%x: tensor<20xbf16>) -> tensor<20xbf16> {
  %0 = shardc.neg %x : tensor<20xbf16>
  return %0 : tensor<20xbf16>
})")
                       .computeSeconds,
                   2);
}

TEST_F(TimeEstimateTest, MachinesAreSharedAmongTheDevices) {
  estimate(step);
  MeshOp mesh = *modules.back()->getOps<MeshOp>().begin();
  llvm::Expected<Machine> cpu = loadMachine("cpu");
  llvm::Expected<Machine> share = loadMachineFor(mesh, "cpu");
  ASSERT_TRUE(bool(cpu) && bool(share));
  EXPECT_DOUBLE_EQ(share->getFlopsPerSecond(ComputeType::F32) * 4,
                   cpu->getFlopsPerSecond(ComputeType::F32));
}
