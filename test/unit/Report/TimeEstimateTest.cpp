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

TEST_F(TimeEstimateTest, DevicesHaveAHandInCollectives) {
  // A quarter of the all-reduce of 8 is hidden, 6 are the device's; the second
  // exp (3.2 + 2.56) comes then.
  machine.overlap = 0.25;
  const double first = 0.128 + 2.24 + 0.8 + 0.64;
  TimeEstimate time = estimate(step);
  EXPECT_DOUBLE_EQ(time.overlappedSeconds, first + 6 + 3.2 + 2.56);
  EXPECT_DOUBLE_EQ(time.getSeconds(), 4.128 + 5.44 + 8);
  machine.overlap = 0;
  EXPECT_DOUBLE_EQ(estimate(step).overlappedSeconds, time.getSeconds());
}

TEST_F(TimeEstimateTest, OverlapHasNoThreshold) {
  // Two all-reduces behind one another, the first behind an op, an op beside
  // them and one behind them.
  auto getSeconds = [&](double overlap) {
    machine.overlap = overlap;
    return estimate(R"(
func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>)
    -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x8xf32>) {
  %0 = shardc.exp %x : tensor<4x8xf32>
  %1 = shardc.all_reduce sum %y over @mesh["data"] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = shardc.all_reduce sum %1 over @mesh["data"] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %3 = shardc.exp %0 : tensor<4x8xf32>
  %4 = shardc.exp %2 : tensor<4x2xf32>
  return %1, %4, %3 : tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x8xf32>
})")
        .overlappedSeconds;
  };
  constexpr double little = 1e-6;
  for (double overlap : {0.0, 0.5, 1 - little}) {
    EXPECT_NEAR(getSeconds(overlap), getSeconds(overlap + little), 1e-4);
    EXPECT_GE(getSeconds(overlap), getSeconds(overlap + little));
  }
  EXPECT_LT(getSeconds(1), getSeconds(0.5));
}

TEST_F(TimeEstimateTest, ShortSidesTakeLonger) {
  // 4 rows, 2 columns and 8 terms: a half, 0.225 and 0.0875 longer, as a tenth
  // and three of the way from 1 to 1024 cost nothing any more.
  ShortSides &sides =
      machine.shortSides[static_cast<unsigned>(machine.f32MatmulType)];
  sides.rows = {{4, 0.5}};
  sides.columns = {{1, 0.5}};
  sides.terms = {{1, 1}};
  const double gemm = 0.128 * (1 + 0.5 + 0.225 + 0.0875);
  TimeEstimate time = estimate(step);
  EXPECT_DOUBLE_EQ(time.computeSeconds, gemm + 0.8 + 3.2);
  // GEMMs have been measured with their accesses: the larger time counts.
  const double others = (4 * (8 + 8) + 4 * (32 + 32)) / 100.0;
  EXPECT_DOUBLE_EQ(time.memorySeconds, 2.24 - gemm + others);
  sides.rows = {{4, 50}};
  EXPECT_DOUBLE_EQ(estimate(step).memorySeconds, others);
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

namespace {

/// Four virtual devices of a computer that has been measured.
class SharedTimeTest : public TimeEstimateTest {
protected:
  SharedTimeTest() {
    machine.f32MatmulType = ComputeType::F32;
    machine.isShared = true;
    machine.shareAmong(4);
    // Of all devices together 10 FLOP/s again.
    ComputerRates &rates = machine.computer.emplace();
    rates.workers = 2;
    rates.vectorLanes = 4;
    rates.vectorTerms = 2;
    rates.partialVectorTerms = 6;
    rates.commandSeconds = 0.25;
    rates.memory = {{64, 100}, {256, 50}, {1024, 10}};
  }
};

} // namespace

static std::string withSharding(const std::string &sharding) {
  return "func.func @f(%x: tensor<4x8xf32> {shardc.sharding = "
         "#shardc.sharding<@mesh, " +
         sharding + R"(>}) -> tensor<4x8xf32> {
  %0 = shardc.kernel(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = shardc.exp %a : tensor<4x8xf32>
    shardc.yield %1 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
})";
}

static constexpr const char *update = R"(
func.func @f(%x: tensor<4x8xf32> {shardc.offset = 0 : i64},
             %y: tensor<4x8xf32> {shardc.offset = 128 : i64}) -> tensor<4x8xf32> {
  %0 = shardc.kernel(%y, %x) {shardc.offsets = array<i64: 0>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
    %1 = shardc.add %a, %b : tensor<4x8xf32>
    shardc.yield %1 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
})";

TEST_F(TimeEstimateTest, CommandsTakeTimeToStart) {
  machine.commandSeconds = 0.25;
  machine.stepSeconds = 2;
  TimeEstimate time = estimate(withSharding("[{\"data\"}, {}]"));
  EXPECT_DOUBLE_EQ(time.computeSeconds, 2 + 0.25 + 32 / 10.0);
  EXPECT_DOUBLE_EQ(time.memorySeconds, 256 / 100.0);
  EXPECT_DOUBLE_EQ(time.overlappedSeconds, time.getSeconds());
  ASSERT_EQ(time.spans.size(), 1u);
  EXPECT_DOUBLE_EQ(time.spans[0].startSeconds, 2);
  EXPECT_DOUBLE_EQ(time.spans[0].seconds, 0.25 + 3.2 + 2.56);
  EXPECT_EQ(time.spans[0].memoryBytes, 256);
  func::FuncOp function = *modules.back()->getOps<func::FuncOp>().begin();
  EXPECT_DOUBLE_EQ(getSerialSeconds(machine, function, MemoryTraffic(function)),
                   0.25 + 3.2 + 2.56);
  // Nobody knows yet which commands there will be.
  const double before = estimate(step).getSeconds();
  machine.commandSeconds = machine.stepSeconds = 0;
  EXPECT_DOUBLE_EQ(before, estimate(step).getSeconds());
}

TEST_F(TimeEstimateTest, InputsComeFromTheHostBesideTheWork) {
  const std::string exp = R"(
func.func @f(%x: tensor<4x8xf32> {shardc.role = #shardc.input<"x">},
    %y: tensor<8xf32> {shardc.role = #shardc.label<"y">}, %w: tensor<4x8xf32>)
    -> tensor<4x8xf32> {
  %0 = shardc.exp %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
})";
  // 32 elements at 10, and 64 that are read or written; 40 from the host.
  const double work = 32 / 10.0 + 256 / 100.0;
  TimeEstimate time = estimate(exp);
  EXPECT_EQ(time.inputSeconds, 0);
  EXPECT_DOUBLE_EQ(time.getSeconds(), work);
  machine.hostBytesPerSecond = 40;
  time = estimate(exp);
  EXPECT_DOUBLE_EQ(time.inputSeconds, 160 / 40.0);
  EXPECT_DOUBLE_EQ(time.getSeconds(), work);
  EXPECT_DOUBLE_EQ(time.overlappedSeconds, work);
  machine.hostBytesPerSecond = 20;
  time = estimate(exp);
  EXPECT_DOUBLE_EQ(time.getSeconds(), 160 / 20.0);
  EXPECT_DOUBLE_EQ(time.overlappedSeconds, 160 / 20.0);
}

TEST_F(TimeEstimateTest, VirtualDevicesOfAGpuComputeAll) {
  machine.isShared = true;
  machine.commandSeconds = 0.25;
  machine.stepSeconds = 2;
  machine.hostBytesPerSecond = 16;
  machine.memory = {{64, 100}, {256, 50}, {1024, 10}};
  machine.shareAmong(4);
  // Each of four devices has a kernel of 32 elements, and accesses 128 bytes
  // twice, after 1024 bytes of all of them.
  TimeEstimate time = estimate(withSharding("[{\"data\"}, {}]"));
  EXPECT_DOUBLE_EQ(time.computeSeconds, 2 + 4 * (0.25 + 32 / 10.0));
  EXPECT_DOUBLE_EQ(time.memorySeconds, 4 * 256 / 10.0);
  // Of inputs those that differ come from the host.
  auto getInputSeconds = [&](llvm::StringRef sharding) {
    return estimate(("func.func @f(%x: tensor<4x8xf32> {shardc.role = "
                     "#shardc.input<\"x\">, shardc.sharding = "
                     "#shardc.sharding<@mesh, " +
                     sharding +
                     ">}) -> tensor<4x8xf32> {\n  return %x : "
                     "tensor<4x8xf32>\n}")
                        .str())
        .inputSeconds;
  };
  EXPECT_DOUBLE_EQ(getInputSeconds("[{}, {}]"), 128 / 16.0);
  EXPECT_DOUBLE_EQ(getInputSeconds("[{\"data\"}, {}]"), 4 * 128 / 16.0);
}

TEST_F(TimeEstimateTest, LibraryGemmsOfVirtualDevicesAreBesideEachOther) {
  GemmTimes &times =
      machine.gemmTimes[static_cast<unsigned>(machine.f32MatmulType)];
  times.sides = {{{4}, {4}, {4}}};
  times.seconds = {500};
  machine.isShared = true;
  machine.commandSeconds = 300;
  const std::string gemm = R"(
func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = shardc.gemm %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
})";
  const Machine before = machine;
  machine.shareAmong(4);
  EXPECT_DOUBLE_EQ(estimate(gemm).computeSeconds, 4 * 500);
  // As long as one, as their starts, or as their FLOPs at 0.1.
  machine = before;
  machine.concurrentCommandSeconds = 1;
  machine.shareAmong(4);
  EXPECT_DOUBLE_EQ(estimate(gemm).computeSeconds, 500);
  machine = before;
  machine.concurrentCommandSeconds = 200;
  machine.shareAmong(4);
  EXPECT_DOUBLE_EQ(estimate(gemm).computeSeconds, 800);
  machine = before;
  machine.concurrentCommandSeconds = 1;
  machine.flopsPerSecond[static_cast<unsigned>(machine.f32MatmulType)] = 0.5;
  machine.shareAmong(4);
  EXPECT_DOUBLE_EQ(estimate(gemm).computeSeconds, 4 * 128 / 0.5);
}

TEST_F(TimeEstimateTest, DevicesHaveCaches) {
  machine.memory = {{64, 100}, {256, 50}, {1024, 10}};
  // Two values of 128 bytes, whose reuse distance is 256.
  EXPECT_DOUBLE_EQ(estimate(withSharding("[{}, {}]")).memorySeconds,
                   256 / 50.0);
  // Between two steps' accesses to either value are 256 bytes, between reading
  // and replacing %x 128.
  EXPECT_DOUBLE_EQ(estimate(update).memorySeconds, 3 * 128 / 50.0);
}

TEST_F(TimeEstimateTest, LibraryGemmsTakeLongerByTheirForm) {
  GemmTimes &times =
      machine.gemmTimes[static_cast<unsigned>(machine.f32MatmulType)];
  times.sides = {{{4}, {4}, {4}}};
  times.seconds = {500};
  times.transposeLhs = {{4, 2}};
  times.transposeRhs = {{4, 3}};
  times.sumsRhs = {{4, 5}};
  auto getSeconds = [&](llvm::StringRef flags, llvm::StringRef sums = "") {
    return estimate(("func.func @f(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) "
                     "-> tensor<4x4xf32> {\n  %0" +
                     llvm::Twine(sums.empty() ? "" : ":2") +
                     " = shardc.gemm %x, %w " + flags +
                     " : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>" +
                     sums + "\n  return %0" + (sums.empty() ? "" : "#0") +
                     " : tensor<4x4xf32>\n}")
                        .str())
        .computeSeconds;
  };
  EXPECT_DOUBLE_EQ(getSeconds(""), 500);
  EXPECT_DOUBLE_EQ(getSeconds("transpose_lhs"), 1000);
  EXPECT_DOUBLE_EQ(getSeconds("transpose_rhs"), 1500);
  EXPECT_DOUBLE_EQ(getSeconds("transpose_lhs transpose_rhs"), 3000);
  EXPECT_DOUBLE_EQ(getSeconds("transpose_lhs sums_rhs", ", tensor<4xf32>"),
                   2500);
}

TEST_F(TimeEstimateTest, LibraryGemmsTakeMeasuredTimes) {
  const std::string gemm = R"(
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = shardc.gemm %x, %w : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
})";
  // 256 FLOPs at 1000, and 80 elements.
  machine.commandSeconds = 0.25;
  TimeEstimate time = estimate(gemm);
  EXPECT_DOUBLE_EQ(time.computeSeconds, 0.25 + 0.256);
  EXPECT_DOUBLE_EQ(time.memorySeconds, 3.2);
  // With its start and its accesses.
  GemmTimes &times =
      machine.gemmTimes[static_cast<unsigned>(machine.f32MatmulType)];
  times.sides = {{{4}, {4}, {4}}};
  times.seconds = {0.5};
  time = estimate(gemm);
  EXPECT_DOUBLE_EQ(time.computeSeconds, 2 * 0.5);
  EXPECT_DOUBLE_EQ(time.memorySeconds, 3.2 - 1);
  times.seconds = {5};
  EXPECT_EQ(estimate(gemm).memorySeconds, 0);
  // Not those that are kernels.
  EXPECT_DOUBLE_EQ(estimate(R"(
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
    shardc.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
})")
                       .computeSeconds,
                   0.25 + 0.256);
}

TEST_F(SharedTimeTest, CopiesAreComputedOnce) {
  // Exponentials of 32 FLOPs. Two values of 128 bytes, whose reuse distance is
  // 256. One copy is too little for a second worker.
  TimeEstimate once = estimate(withSharding("[{}, {}]"));
  EXPECT_DOUBLE_EQ(once.computeSeconds, 2 * 32 * 32 / 10.0 + 0.25);
  EXPECT_DOUBLE_EQ(once.memorySeconds, 2 * 256 / 50.0);
  EXPECT_EQ(once.communicationSeconds, 0);
  // Four copies of both: a distance of 1024.
  TimeEstimate four = estimate(withSharding("[{\"data\"}, {}]"));
  EXPECT_DOUBLE_EQ(four.computeSeconds, 4 * 32 * 32 / 10.0 + 0.25);
  EXPECT_DOUBLE_EQ(four.memorySeconds, 1024 / 10.0);
  EXPECT_DOUBLE_EQ(four.overlappedSeconds, four.getSeconds());
  ASSERT_EQ(four.spans.size(), 1u);
  EXPECT_DOUBLE_EQ(four.spans[0].seconds, four.getSeconds());
  EXPECT_EQ(four.spans[0].memoryBytes, 256);
}

TEST_F(SharedTimeTest, ResultsGoBackToWhereTheirOperandsCameFrom) {
  // Between two steps' accesses to either value are 256 bytes, between reading
  // and replacing %x 128. The only copy has one of two workers.
  EXPECT_DOUBLE_EQ(estimate(update).memorySeconds, 2 * 3 * 128 / 50.0);
  // Both accesses of what is replaced have a rate of their own.
  machine.computer->replacing = {{256, 80}};
  EXPECT_DOUBLE_EQ(estimate(update).memorySeconds,
                   2 * (128 / 50.0 + 2 * 128 / 80.0));
}

TEST_F(SharedTimeTest, PlacesAreAsLargeAsTheLargestValue) {
  // %x and %0 have 32 bytes and %1, in the place of %0, 128: 160 in all.
  const double seconds = machine.computer->getSecondsPerByte(160);
  EXPECT_DOUBLE_EQ(estimate(R"(
func.func @f(%x: tensor<8xf32> {shardc.offset = 0 : i64}) -> tensor<4x8xf32> {
  %0 = shardc.kernel(%x) {shardc.offsets = array<i64: 64>} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %2 = shardc.exp %a : tensor<8xf32>
    shardc.yield %2 : tensor<8xf32>
  }
  %1 = shardc.kernel(%x) {shardc.offsets = array<i64: 64>} : (tensor<8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %2 = shardc.broadcast %a dims = [1] : tensor<8xf32> -> tensor<4x8xf32>
    shardc.yield %2 : tensor<4x8xf32>
  }
  return %1 : tensor<4x8xf32>
})")
                       .memorySeconds,
                   2 * ((32 + 128) * seconds + (32 + 32) / 100.0));
}

TEST_F(SharedTimeTest, GemmsOfMicrobatchesAreMergedInF32) {
  machine.computer->memory = {{1, 10}};
  auto getFactorSeconds = [&](const std::string &type) {
    double seconds[2];
    for (double perByte : {0.0, 1.0}) {
      machine.computer->factors = {{1, perByte > 0 ? 1 / perByte : 1e30}};
      std::string text = R"(
func.func @f(%x: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %w: tensor<8x12xf32>) -> tensor<4x12xf32> {
  %0 = shardc.accumulate 2 of (%x) : (tensor<8x8xf32>) -> tensor<4x12xf32> {
  ^bb0(%a: tensor<4x8xf32>, %s: tensor<4x12xf32>):
    %1 = shardc.gemm %a, %w : tensor<4x8xf32>, tensor<8x12xf32> -> tensor<4x12xf32>
    %2 = shardc.kernel(%1, %s) : (tensor<4x12xf32>, tensor<4x12xf32>) -> tensor<4x12xf32> {
    ^bb0(%t: tensor<4x12xf32>, %u: tensor<4x12xf32>):
      %3 = shardc.add %t, %u : tensor<4x12xf32>
      shardc.yield %3 : tensor<4x12xf32>
    }
    shardc.yield %2 : tensor<4x12xf32>
  }
  return %0 : tensor<4x12xf32>
})";
      for (size_t at = text.find("f32"); at != std::string::npos;
           at = text.find("f32", at + type.size()))
        text.replace(at, 3, type);
      seconds[perByte > 0] = estimate(text).memorySeconds;
    }
    return seconds[1] - seconds[0];
  };
  // One GEMM of all devices reads the factor in both runs.
  EXPECT_NEAR(getFactorSeconds("f32"), 2 * 8 * 12 * 4, 1e-9);
  // Each of four devices does.
  EXPECT_NEAR(getFactorSeconds("bf16"), 2 * 4 * 8 * 12 * 2, 1e-9);
  // The nearest cache holds it for the other three.
  machine.computer->memory = {{512, 10}};
  EXPECT_NEAR(getFactorSeconds("bf16"), 2 * 8 * 12 * 2, 1e-9);
}

TEST_F(SharedTimeTest, CoordinatesMakeCopiesDiffer) {
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = shardc.kernel(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = shardc.mask %a dims = [0] fill = 0.0
        shard = #shardc.sharding<@mesh, [{"data"}, {}]> global_shape = [15, 8]
        : tensor<4x8xf32>
    %2 = shardc.exp %1 : tensor<4x8xf32>
    shardc.yield %2 : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
})");
  EXPECT_DOUBLE_EQ(time.computeSeconds, 4 * 32 * 32 / 10.0 + 0.25);
}

TEST_F(SharedTimeTest, GemmsTakeWholeVectors) {
  // Four devices with 4 rows each of x; rows of 6 are a vector and a part of
  // one, which is stored in one piece.
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
    shardc.yield %1 : tensor<4x6xf32>
  }
  return %0 : tensor<4x6xf32>
})");
  EXPECT_DOUBLE_EQ(time.computeSeconds,
                   4 * 4 * (10 + 10) * 4 * 2 / 10.0 + 0.25);
  EXPECT_EQ(time.spans[0].gemmFlops, 2 * 4 * 8 * 6);
}

TEST_F(SharedTimeTest, KernelsOfFewColumnsHavePairs) {
  auto getSeconds = [&](const char *terms, const char *columns, const char *lhs,
                        const char *contracting) {
    std::string x = std::string("tensor<") + lhs + "xf32>",
                w = std::string("tensor<") + terms + "x" + columns + "xf32>",
                y = std::string("tensor<16x") + columns + "xf32>";
    return estimate("func.func @f(%x: " + x + ", %w: " + w + ") -> " + y +
                    " {\n  %0 = shardc.kernel(%x, %w) : (" + x + ", " + w +
                    ") -> " + y + " {\n  ^bb0(%a: " + x + ", %b: " + w +
                    "):\n    %1 = shardc.dot_general %a, %b contracting = [" +
                    contracting + "] x [0] : " + x + ", " + w + " -> " + y +
                    "\n    shardc.yield %1 : " + y +
                    "\n  }\n  return %0 : " + y + "\n}")
        .computeSeconds;
  };
  machine.computer->vectorLanes = 8;
  const double second = 2 * 8 * 2 / 10.0; // Of a vector; one worker computes.
  // Of four rows two pairs of 5 terms and the 2 of a vector, and 5 shuffles.
  EXPECT_DOUBLE_EQ(getSeconds("5", "4", "16x5", "1"),
                   4 * (2 * 7 + 5) * second + 0.25);
  EXPECT_DOUBLE_EQ(getSeconds("5", "3", "16x5", "1"),
                   4 * (2 * 7 + 5) * second + 0.25);
  // Too many columns, too few terms, or terms that do not lie side by side.
  EXPECT_DOUBLE_EQ(getSeconds("5", "8", "16x5", "1"), 16 * 7 * second + 0.25);
  EXPECT_DOUBLE_EQ(getSeconds("3", "4", "16x3", "1"), 16 * 5 * second + 0.25);
  EXPECT_DOUBLE_EQ(getSeconds("5", "4", "5x16", "0"), 16 * 7 * second + 0.25);
}

TEST_F(SharedTimeTest, LibraryGemmsAreMergedAndSummed) {
  // One GEMM of 16 rows, and one of 16 terms, whose sum over devices is no work
  // for the all-reduce.
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %w: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = shardc.gemm %x, %w : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  %1 = shardc.gemm %x, %0 transpose_lhs : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  %2 = shardc.all_reduce sum %1 over @mesh["data"] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
})");
  // The second has one result, too small for two workers.
  EXPECT_DOUBLE_EQ(time.computeSeconds, 16 * 10 * 4 * 2 / 10.0 + 0.25 +
                                            2 * 8 * 18 * 4 * 2 / 10.0 + 0.25);
  EXPECT_DOUBLE_EQ(time.communicationSeconds, 0.25);
}

TEST_F(SharedTimeTest, SumsOfLoopsAreAddedUpOverDevices) {
  machine.computer->memory = {{1, 10}};
  // Of two microbatches of 4 rows on each of four devices.
  auto getTime = [&](const char *reader) {
    return estimate(std::string(R"(
func.func @f(%x: tensor<8x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %y: tensor<8x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<8x4xf32> {
  %0 = shardc.accumulate 2 of (%x, %y) : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x4xf32>, %s: tensor<8x4xf32>):
    %1 = shardc.gemm %a, %b plus %s transpose_lhs : tensor<4x8xf32>, tensor<4x4xf32> plus tensor<8x4xf32> -> tensor<8x4xf32>
    shardc.yield %1 : tensor<8x4xf32>
  }
  %2 = shardc.all_reduce sum %0 over @mesh["data"] : (tensor<8x4xf32>) -> tensor<8x4xf32>
)") + reader + "\n  return %2 : tensor<8x4xf32>\n}");
  };
  // In each run one GEMM of 16 terms, too small for two workers, reads 4 copies
  // of both factors and adds to one sum. Its accesses to the nearest cache are
  // hidden. The sum is cleared once.
  TimeEstimate sum = getTime("");
  EXPECT_DOUBLE_EQ(sum.computeSeconds, 2 * (2 * 8 * 18 * 4 * 2 / 10.0 + 0.25));
  EXPECT_DOUBLE_EQ(sum.memorySeconds, 128 / 10.0);
  EXPECT_DOUBLE_EQ(sum.communicationSeconds, 0.25);
  // What others read differs: four GEMMs, four sums.
  TimeEstimate apart = getTime(R"(
  %3 = shardc.kernel(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%c: tensor<8x4xf32>):
    %4 = shardc.exp %c : tensor<8x4xf32>
    shardc.yield %4 : tensor<8x4xf32>
  })");
  EXPECT_GT(apart.computeSeconds, 2 * (4 * 8 * 6 * 4 * 2 / 10.0 + 0.25));
  EXPECT_DOUBLE_EQ(apart.communicationSeconds, 0.25 + (4 + 1) * 128 / 10.0);
}

TEST_F(SharedTimeTest, KernelsAddUpProductsOverDevices) {
  // A GEMM of 4 terms on each of four devices, whose sum is one of 16 terms and
  // no work for the all-reduce, unless something comes between.
  auto getEstimate = [&](const std::string &behind,
                         const std::string &yielded) {
    return estimate(R"(
func.func @f(%x: tensor<16x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"data"}]>},
             %w: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<16x8xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<16x4xf32>, tensor<4x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%a: tensor<16x4xf32>, %b: tensor<4x8xf32>):
    %2 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<16x4xf32>, tensor<4x8xf32> -> tensor<16x8xf32>
    )" + behind + "\n    shardc.yield " +
                    yielded +
                    R"( : tensor<16x8xf32>
  }
  %1 = shardc.all_reduce sum %0 over @mesh["data"] : (tensor<16x8xf32>) -> tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
})");
  };
  TimeEstimate time = getEstimate("", "%2");
  EXPECT_DOUBLE_EQ(time.computeSeconds, 2 * 16 * 18 * 8 * 2 / 10.0 + 0.25);
  EXPECT_DOUBLE_EQ(time.communicationSeconds, 0.25);
  EXPECT_GT(getEstimate("%3 = shardc.neg %2 : tensor<16x8xf32>", "%3")
                .communicationSeconds,
            5 * 512 / 50.0);
}

TEST_F(SharedTimeTest, KernelsComputeColumnsOfDevicesWithOneLeftFactor) {
  // Half a vector of columns on each of four devices.
  machine.computer->vectorLanes = 16;
  auto getSeconds = [&](const char *ofRows) {
    return estimate(R"(
func.func @f(%x: tensor<16x3xf32> {shardc.sharding = #shardc.sharding<@mesh, [{)" +
                    std::string(ofRows) + R"(}, {}]>},
             %w: tensor<3x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"data"}]>}) -> tensor<16x8xf32> {
  %0 = shardc.kernel(%x, %w) : (tensor<16x3xf32>, tensor<3x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%a: tensor<16x3xf32>, %b: tensor<3x8xf32>):
    %1 = shardc.dot_general %a, %b contracting = [1] x [0]
        : tensor<16x3xf32>, tensor<3x8xf32> -> tensor<16x8xf32>
    shardc.yield %1 : tensor<16x8xf32>
  }
  return %0 : tensor<16x8xf32>
})")
        .computeSeconds;
  };
  EXPECT_DOUBLE_EQ(getSeconds(""), 16 * 5 * 2 * 16 * 2 / 10.0 + 0.25);
  EXPECT_DOUBLE_EQ(getSeconds("\"data\""), 4 * 16 * 5 * 16 * 2 / 10.0 + 0.25);
}

TEST_F(SharedTimeTest, CollectivesCopyWhatDiffers) {
  machine.computer->memory = {{1, 10}};
  // All devices have the same 32 bytes, which are read and written once.
  EXPECT_DOUBLE_EQ(estimate(R"(
func.func @f(%x: tensor<2xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>})
    -> tensor<8xf32> {
  %0 = shardc.all_gather %x over @mesh["data"] dims = [0] : (tensor<2xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
})")
                       .communicationSeconds,
                   0.25 + 64 / 10.0);
  // Four times 32 bytes are read; each device has 8 of the sums.
  EXPECT_DOUBLE_EQ(estimate(R"(
func.func @f(%x: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<1x8xf32> {
  %0 = shardc.reduce_scatter sum %x over @mesh["data"] dims = [0] : (tensor<4x8xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
})")
                       .communicationSeconds,
                   0.25 + (4 * 128 + 4 * 32) / 10.0);
}

TEST_F(SharedTimeTest, GemmsReadGatheredFactorsInPlace) {
  machine.computer->memory = {{1, 10}};
  auto getSeconds = [&](const char *reader) {
    return estimate(std::string(R"(
func.func @f(%x: tensor<4x8xf32>, %w: tensor<2x4xf32>
      {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<4x4xf32> {
  %0 = shardc.all_gather %w over @mesh["data"] dims = [0] : (tensor<2x4xf32>) -> tensor<8x4xf32>
  %1 = shardc.gemm %x, %0 : tensor<4x8xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
)") + reader + "\n  return %1 : tensor<4x4xf32>\n}")
        .communicationSeconds;
  };
  EXPECT_EQ(getSeconds(""), 0);
  // Another reader: 128 bytes are read and written.
  EXPECT_DOUBLE_EQ(getSeconds(R"(
  %2 = shardc.kernel(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32> {
  ^bb0(%a: tensor<8x4xf32>):
    %3 = shardc.exp %a : tensor<8x4xf32>
    shardc.yield %3 : tensor<8x4xf32>
  })"),
                   0.25 + 256 / 10.0);
}

TEST_F(SharedTimeTest, SumsOverDevicesReadGatheredFactorsInPlace) {
  machine.computer->memory = {{1, 10}};
  // The sum is no work but to meet; 128 bytes are read and written where the
  // terms of all devices are one factor.
  auto getSeconds = [&](const std::string &left, const char *transpose) {
    return estimate(
               R"(
func.func @f(%x: tensor<)" +
               left +
               R"(xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"data"}]>},
             %w: tensor<2x4xf32>
      {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>}) -> tensor<4x4xf32> {
  %0 = shardc.all_gather %w over @mesh["data"] dims = [0] : (tensor<2x4xf32>) -> tensor<8x4xf32>
  %1 = shardc.gemm %x, %0)" +
               transpose + " : tensor<" + left +
               R"(xf32>, tensor<8x4xf32> -> tensor<4x4xf32>
  %2 = shardc.all_reduce sum %1 over @mesh["data"] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
})")
        .communicationSeconds;
  };
  EXPECT_DOUBLE_EQ(getSeconds("4x8", ""), 0.25);
  EXPECT_DOUBLE_EQ(getSeconds("8x4", " transpose_lhs"),
                   0.25 + 256 / 10.0 + 0.25);
}

TEST_F(SharedTimeTest, KernelsReadShardsOfSumsInPlace) {
  machine.computer->memory = {{1, 10}};
  // The gradient of each of four devices' rows, whose sum the GEMM is; `w` and
  // the shards have `shape`, along `dim`.
  auto getSeconds = [&](const std::string &shape, const std::string &dim,
                        const char *offsets, const char *behind) {
    const std::string axes = dim == "0" ? "{\"data\"}, {}" : "{}, {\"data\"}";
    const std::string shard = "tensor<" + shape + "xf32>";
    return estimate(
               R"(
func.func @f(%x: tensor<4x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %y: tensor<4x128xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %w: )" +
               shard + " {shardc.sharding = #shardc.sharding<@mesh, [" + axes +
               "]>}) -> " + shard + R"( {
  %0 = shardc.gemm %x, %y transpose_lhs)" +
               offsets +
               R"( : tensor<4x16xf32>, tensor<4x128xf32> -> tensor<16x128xf32>
  %1 = shardc.reduce_scatter sum %0 over @mesh["data"] dims = [)" +
               dim + "] : (tensor<16x128xf32>) -> " + shard + behind + R"(
  %2 = shardc.kernel(%w, %1) : ()" +
               shard + ", " + shard + ") -> " + shard +
               " {\n  ^bb0(%a: " + shard + ", %b: " + shard + R"():
    %3 = shardc.sub %a, %b : )" +
               shard + R"(
    shardc.yield %3 : )" +
               shard + R"(
  }
  return %2 : )" +
               shard + "\n}")
        .communicationSeconds;
  };
  // Blocks of rows, and of 32 columns.
  EXPECT_EQ(getSeconds("4x128", "0", "", ""), 0);
  EXPECT_EQ(getSeconds("16x32", "1", "", ""), 0);
  // The place of the sum is written before its last reader has ended.
  const char *zeros =
      "\n  %z = shardc.zeros {shardc.offsets = array<i64: 4096>} : "
      "tensor<16x128xf32>";
  EXPECT_EQ(
      getSeconds("4x128", "0", " {shardc.offsets = array<i64: 12288>}", zeros),
      0);
  EXPECT_DOUBLE_EQ(
      getSeconds("4x128", "0", " {shardc.offsets = array<i64: 8192>}", zeros),
      0.25 + 2 * 8192 / 10.0);
}

TEST_F(SharedTimeTest, ShardsOfSumsInPlacesOfTheirOwnAreCopied) {
  machine.computer->memory = {{1, 10}};
  auto getSeconds = [&](const char *shard, const char *sum,
                        const char *reader) {
    std::string text = R"(
func.func @f(%x: tensor<4x16xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %y: tensor<4xCOLUMNSxf32>, %s: tensor<16x16xf32>) -> SHARD {
  %0 = shardc.gemm %x, %y transpose_lhs : tensor<4x16xf32>, tensor<4xCOLUMNSxf32> -> tensor<16xCOLUMNSxf32>
  %1 = shardc.reduce_scatter sum %0 over @mesh["data"] dims = [1] : (tensor<16xCOLUMNSxf32>) -> SHARD
  %2 = READER
  return %2 : SHARD
})";
    for (auto [name, value] :
         {std::pair("READER", reader), {"COLUMNS", sum}, {"SHARD", shard}})
      for (size_t at; (at = text.find(name)) != std::string::npos;)
        text.replace(at, strlen(name), value);
    return estimate(text).communicationSeconds;
  };
  const char *kernel = R"(shardc.kernel(%1) : (SHARD) -> SHARD {
  ^bb0(%a: SHARD):
    %3 = shardc.exp %a : SHARD
    shardc.yield %3 : SHARD
  })";
  EXPECT_EQ(getSeconds("tensor<16x32xf32>", "128", kernel), 0);
  // Half a panel of columns.
  EXPECT_DOUBLE_EQ(getSeconds("tensor<16x16xf32>", "64", kernel),
                   0.25 + 2 * 16 * 64 * 4 / 10.0);
  // A GEMM reads the shard.
  EXPECT_DOUBLE_EQ(
      getSeconds("tensor<16x32xf32>", "128",
                 "shardc.gemm %s, %1 : tensor<16x16xf32>, SHARD -> SHARD"),
      0.25 + 2 * 16 * 128 * 4 / 10.0);
}

TEST_F(SharedTimeTest, CollectivesTakeAsLongAsMeasured) {
  machine.computer->memory = {{1, 10}};
  auto &times =
      machine.computer
          ->collectives[static_cast<unsigned>(CollectiveKind::AllGather)];
  auto getSeconds = [&] {
    return estimate(R"(
func.func @f(%x: tensor<2xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}]>})
    -> tensor<8xf32> {
  %0 = shardc.all_gather %x over @mesh["data"] dims = [0] : (tensor<2xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
})")
        .communicationSeconds;
  };
  // 32 bytes are read and 32 written, with all operands in caches.
  times = {{16, 3}, {64, 20}};
  EXPECT_DOUBLE_EQ(getSeconds(), 20);
  // In memory they take longer.
  times = {{16, 3}, {64, 5}};
  EXPECT_DOUBLE_EQ(getSeconds(), 0.25 + 64 / 10.0);
}

TEST_F(SharedTimeTest, LibraryGemmsOfBf16TakeAsLongAsMeasured) {
  // One GEMM of 16 rows by 4 columns of 8 terms. Four devices share 200 FLOP/s:
  // a multiply-add takes 1/100.
  machine.flopsPerSecond[static_cast<unsigned>(ComputeType::BF16)] = 50;
  ShortSides &sides =
      machine.shortSides[static_cast<unsigned>(ComputeType::BF16)];
  sides.rows = {{16, 1}};
  sides.columns = {{8, 0.5}};
  const char *bf16Gemm = R"(
func.func @f(%x: tensor<4x8xbf16> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %w: tensor<8x4xbf16>) -> tensor<4x4xbf16> {
  %0 = shardc.gemm %x, %w : tensor<4x8xbf16>, tensor<8x4xbf16> -> tensor<4x4xbf16>
  return %0 : tensor<4x4xbf16>
})";
  TimeEstimate time = estimate(bf16Gemm);
  const double gemm = 16 * 4 * 8 / 100.0 * (1 + 1 + 1);
  EXPECT_DOUBLE_EQ(time.computeSeconds, gemm + 0.25);
  // It has been measured with its accesses: the larger time counts.
  machine.computer->memory = {{1, 100}, {2, 1}};
  const double bytes = 2 * (16 * 8 + 8 * 4 + 16 * 4);
  EXPECT_DOUBLE_EQ(estimate(bf16Gemm).memorySeconds, bytes * (1 - 0.01) - gemm);
  machine.computer->memory = {{1, 100}, {2, 50}};
  EXPECT_EQ(estimate(bf16Gemm).memorySeconds, 0);
}

TEST_F(SharedTimeTest, CollectivesTakeTimeForEachPiece) {
  machine.computer->memory = {{1, 1e30}};
  machine.computer->pieceSeconds = 1;
  auto getPieces = [&](const char *operand, const char *axes, const char *op,
                       const char *result) {
    std::string text = std::string("func.func @f(%x: ") + operand +
                       " {shardc.sharding = #shardc.sharding<@mesh, [" + axes +
                       "]>}) -> " + result + " {\n  %0 = shardc." + op +
                       "\n  return %0 : " + result + "\n}";
    return estimate(text).communicationSeconds - 0.25;
  };
  // One result for all: of each of four peers a run for each of 8 rows.
  EXPECT_DOUBLE_EQ(getPieces("tensor<8x2xf32>", "{}, {\"data\"}",
                             "all_gather %x over @mesh[\"data\"] dims = [1] : "
                             "(tensor<8x2xf32>) -> tensor<8x8xf32>",
                             "tensor<8x8xf32>"),
                   4 * 8);
  // Of each of four peers one run.
  EXPECT_DOUBLE_EQ(getPieces("tensor<2x8xf32>", "{\"data\"}, {}",
                             "all_gather %x over @mesh[\"data\"] dims = [0] : "
                             "(tensor<2x8xf32>) -> tensor<8x8xf32>",
                             "tensor<8x8xf32>"),
                   4);
  // Four results of 8 rows, each the sum of four runs.
  EXPECT_DOUBLE_EQ(
      getPieces("tensor<8x8xf32>", "{\"data\"}, {}",
                "reduce_scatter sum %x over @mesh[\"data\"] dims = [1] : "
                "(tensor<8x8xf32>) -> tensor<8x2xf32>",
                "tensor<8x2xf32>"),
      4 * 8 * 4);
  // Four results of 8 rows, a run of each in two columns of a peer.
  EXPECT_DOUBLE_EQ(getPieces("tensor<2x8xf32>", "{\"data\"}, {}",
                             "all_to_all %x over @mesh[\"data\"] split_dim = 1 "
                             "concat_dim = 0 : tensor<2x8xf32> -> "
                             "tensor<8x2xf32>",
                             "tensor<8x2xf32>"),
                   4 * 8);
  EXPECT_DOUBLE_EQ(getPieces("tensor<8x2xf32>", "{}, {\"data\"}",
                             "all_to_all %x over @mesh[\"data\"] split_dim = 0 "
                             "concat_dim = 1 : tensor<8x2xf32> -> "
                             "tensor<2x8xf32>",
                             "tensor<2x8xf32>"),
                   4 * 2 * 4);
}

TEST_F(SharedTimeTest, WhatOthersHaveReadTakesLongerToWrite) {
  machine.computer->memory = {{1, 10}};
  auto getExchange = [&](const std::string &program) {
    machine.computer->exchange = {{1, 1}};
    const double with = estimate(program).getSeconds();
    machine.computer->exchange = {};
    return with - estimate(program).getSeconds();
  };
  // All workers read the right factor of a GEMM, and of the left one of a GEMM
  // that adds up rows half of what others write: those who share a result some
  // columns. A worker that has a copy of its own has written the left one, too.
  const std::string gemm = R"(
func.func @f(%p: tensor<64x64xf32> SHARDING, %q: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %x = shardc.kernel(%p) {shardc.offsets = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>):
    %1 = shardc.exp %a : tensor<64x64xf32>
    shardc.yield %1 : tensor<64x64xf32>
  }
  %y = shardc.kernel(%q) {shardc.offsets = array<i64: 16384>} : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>):
    %1 = shardc.exp %a : tensor<64x64xf32>
    shardc.yield %1 : tensor<64x64xf32>
  }
  %0 = shardc.kernel(%x, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>):
    %1 = shardc.dot_general %a, %b contracting = [0] x [0]
        : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    shardc.yield %1 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
})";
  auto withSharding = [&](const std::string &sharding) {
    std::string text = gemm;
    return text.replace(text.find("SHARDING"), 8, sharding);
  };
  EXPECT_DOUBLE_EQ(getExchange(withSharding("")), 16384 / 2 + 16384);
  EXPECT_DOUBLE_EQ(
      getExchange(withSharding(
          "{shardc.sharding = #shardc.sharding<@mesh, [{}, {\"data\"}]>}")),
      16384);
  // Workers have some elements of all copies of a sum. They have computed some
  // copies, or some rows of all, if all copies come from one.
  const std::string sum = R"(
func.func @f(%p: tensor<4x8xf32>, %q: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>})
    -> tensor<1x8xf32> {
  %x = shardc.kernel(%p, %q) {shardc.offsets = array<i64: 0>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
    %1 = shardc.add %a, %b : tensor<4x8xf32>
    shardc.yield %1 : tensor<4x8xf32>
  }
  %0 = shardc.reduce_scatter sum %x over @mesh["data"] dims = [0] : (tensor<4x8xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
})";
  auto sharing = [&](const std::string &sharding) {
    std::string text = sum;
    return text.insert(text.find(", %q"), sharding);
  };
  EXPECT_DOUBLE_EQ(
      getExchange(sharing(
          " {shardc.sharding = #shardc.sharding<@mesh, [{}, {\"data\"}]>}")),
      4 * 128 / 2);
  EXPECT_DOUBLE_EQ(getExchange(sharing("")), 0);
}

TEST_F(SharedTimeTest, RightFactorsAreNotHidden) {
  machine.computer->memory = {{1, 10}};
  machine.computer->factors = {{1, 1}};
  // One GEMM for all devices reads 8 by 12 elements, which are more columns
  // than two vectors have; each of four its own. Fewer are fetched ahead.
  auto getSeconds = [&](const char *sharding) {
    return estimate(std::string(R"(
func.func @f(%x: tensor<4x8xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"data"}, {}]>},
             %w: tensor<8x12xf32> {shardc.sharding = #shardc.sharding<@mesh, )") +
                    sharding + R"(>}) -> tensor<4x12xf32> {
  %0 = shardc.gemm %x, %w : tensor<4x8xf32>, tensor<8x12xf32> -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
})")
        .memorySeconds;
  };
  EXPECT_DOUBLE_EQ(getSeconds("[{}, {}]"), 8 * 12 * 4);
  EXPECT_DOUBLE_EQ(getSeconds("[{}, {\"data\"}]"), 4 * 8 * 12 * 4);
}

TEST_F(SharedTimeTest, ReshapedFactorsAreThoseInMemory) {
  machine.computer->memory = {{1, 10}};
  machine.computer->factors = {{1, 1}};
  // Sums over blocks of two rows: each of four devices reads a factor of its
  // own, through a reshape.
  EXPECT_DOUBLE_EQ(estimate(R"(
func.func @f(%x: tensor<4x8xf32>,
             %y: tensor<4x12xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {"data"}]>}) -> tensor<2x8x12xf32> {
  %0 = shardc.kernel(%x, %y) : (tensor<4x8xf32>, tensor<4x12xf32>) -> tensor<2x8x12xf32> {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x12xf32>):
    %1 = shardc.reshape %a : tensor<4x8xf32> -> tensor<2x2x8xf32>
    %2 = shardc.reshape %b : tensor<4x12xf32> -> tensor<2x2x12xf32>
    %3 = shardc.dot_general %1, %2 batching = [0] x [0] contracting = [1] x [1]
        : tensor<2x2x8xf32>, tensor<2x2x12xf32> -> tensor<2x8x12xf32>
    shardc.yield %3 : tensor<2x8x12xf32>
  }
  return %0 : tensor<2x8x12xf32>
})")
                       .memorySeconds,
                   4 * 4 * 12 * 4);
}

TEST_F(SharedTimeTest, LoopsRepeatTheirBody) {
  TimeEstimate time = estimate(R"(
func.func @f(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  %0 = shardc.accumulate 4 of (%x) : (tensor<8x8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<2x8xf32>, %s: tensor<8xf32>):
    %1 = shardc.kernel(%a, %s) : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%b: tensor<2x8xf32>, %t: tensor<8xf32>):
      %2 = shardc.reduce sum %b dims = [0] : tensor<2x8xf32> -> tensor<8xf32>
      %3 = shardc.add %2, %t : tensor<8xf32>
      shardc.yield %3 : tensor<8xf32>
    }
    shardc.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
})");
  EXPECT_DOUBLE_EQ(time.computeSeconds, 4 * (2 * (16 + 8) / 10.0 + 0.25));
  // The sum is cleared once.
  EXPECT_EQ(time.spans.size(), 2u);
}

TEST_F(SharedTimeTest, BeforeKernelsTheOpsCount) {
  EXPECT_DOUBLE_EQ(estimate(step).communicationSeconds, 4 * 0.5 + 48 / 2.0);
}
