//===- ShrinkSizesTest.cpp - Small sizes are cut as large ones are --------===//

#include "InterpreterTest.h"

#include "shardc/Analysis/Layout.h"
#include "shardc/Interpreter/ShrinkSizes.h"

using namespace mlir;
using namespace shardc;

namespace {

using ShrinkSizesTest = InterpreterTest;

TEST_F(ShrinkSizesTest, DivisibilityIsKept) {
  for (int64_t size = 2; size < 60; ++size)
    for (int64_t other = 2; other < 60; ++other)
      if (isCutAlike(size, {2, 3}, other, {2, 3}))
        for (int64_t shards : {2, 3, 6}) {
          EXPECT_EQ(size % shards == 0, other % shards == 0);
          EXPECT_EQ(size < shards, other < shards);
        }
}

TEST_F(ShrinkSizesTest, Examples) {
  EXPECT_TRUE(isCutAlike(1024, {8}, 8, {8}));
  EXPECT_FALSE(isCutAlike(1024, {8}, 4, {8}));
  EXPECT_FALSE(isCutAlike(1024, {8}, 12, {8}));
  // Seven devices with elements and one without, or all eight.
  EXPECT_FALSE(isCutAlike(801, {8}, 9, {8}));
  EXPECT_TRUE(isCutAlike(801, {8}, 15, {8}));
  // Half the devices of eight, a quarter of those of four, divide alike.
  EXPECT_TRUE(isCutAlike(4096, {1024, 8}, 4, {4, 2}));
}

/// Sizes of all dimensions in the first function's arguments.
std::vector<int64_t> getSizes(ModuleOp module) {
  std::vector<int64_t> sizes;
  for (BlockArgument argument :
       (*module.getOps<func::FuncOp>().begin()).getArguments())
    for (int64_t size : cast<RankedTensorType>(argument.getType()).getShape())
      sizes.push_back(size);
  return sizes;
}

TEST_F(ShrinkSizesTest, EverySizeEverywhere) {
  parse(R"mlir(
shardc.mesh @mesh <["a" = 2, "b" = 3]>
func.func @f(%x: tensor<60x7xf32>, %y: tensor<60xi32> {shardc.role = #shardc.label<"y">, shardc.label_classes = 7 : i64})
    -> tensor<60x7xf32> {
  %0 = shardc.constant dense<2.0> : tensor<60x7xf32>
  %1 = shardc.mul %x, %0 : tensor<60x7xf32>
  return %1 : tensor<60x7xf32>
}
)mlir");
  FailureOr<std::vector<ShrunkSize>> changes = shrinkSizes(*module);
  ASSERT_TRUE(succeeded(changes));
  EXPECT_EQ(getSizes(*module), (std::vector<int64_t>{6, 7, 6}));
  ASSERT_EQ(changes->size(), 1u);
  EXPECT_EQ(changes->front().from, 60);
  EXPECT_EQ(changes->front().to, 6);
}

TEST_F(ShrinkSizesTest, SizesThatMultiplyStay) {
  parse(R"mlir(
shardc.mesh @mesh <["a" = 2]>
func.func @f(%x: tensor<8x32xf32>, %y: tensor<64xf32>) {
  %0 = shardc.reshape %x : tensor<8x32xf32> -> tensor<256xf32>
  %1 = shardc.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return
}
)mlir");
  ASSERT_TRUE(succeeded(shrinkSizes(*module)));
  EXPECT_EQ(getSizes(*module), (std::vector<int64_t>{8, 32, 2}));
}

/// The same with strided shards, and how often each prime is a part of a gap.
int64_t getShrunk(int64_t size, ArrayRef<StringRef> entries,
                  MLIRContext &context) {
  std::string list, type = "tensor<" + std::to_string(size) + "xf32>";
  for (StringRef entry : entries)
    list += (list.empty() ? "\"" : ", \"") + entry.str() + "\"";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "shardc.mesh @mesh <[\"a\" = 2, \"b\" = 3]>\n"
      "func.func @f(%x: " +
          type + ") -> " + type +
          " {\n"
          "  %0 = shardc.relu %x {shardc.assignment = #shardc.assignment<[{" +
          list + "}]>} : " + type + "\n  return %0 : " + type + "\n}\n",
      &context);
  if (!module || failed(shrinkSizes(*module)))
    return 0;
  return getSizes(*module)[0];
}

TEST_F(ShrinkSizesTest, GapsOfStridedShardsCountAsAxes) {
  EXPECT_EQ(getShrunk(3600, {"a"}, context), 6);
  // Two parts by three shards, beside what other lists may have of "a".
  EXPECT_EQ(getShrunk(3600, {"*2", "b"}, context), 12);
  // A gap may be filled in part: its factors count one by one.
  EXPECT_EQ(getShrunk(3600, {"*6", "b"}, context), 36);
  EXPECT_EQ(getShrunk(3600, {"*2", "b", "*2", "a"}, context), 24);
  // What does not divide by all of them is not made to, and what would have to
  // grow stays.
  int64_t uneven = getShrunk(90, {"*2", "b"}, context);
  EXPECT_LT(uneven, 90);
  EXPECT_EQ(uneven % 6, 0);
  EXPECT_NE(uneven % 12, 0);
  EXPECT_EQ(getShrunk(12, {"*2", "b"}, context), 12);
}

TEST_F(ShrinkSizesTest, BatchesAreMultiplesOfMicrobatches) {
  parse(R"mlir(
shardc.mesh @mesh <["a" = 2]>
func.func @f(%x: tensor<4098x600xf32>, %y: tensor<8x4xf32>) -> tensor<600xf32> {
  %0 = shardc.accumulate 3 of (%x) : (tensor<4098x600xf32>) -> tensor<600xf32> {
  ^bb0(%rows: tensor<1366x600xf32>):
    %1 = shardc.iota dim = 0 microbatch = [3, 1366] : tensor<1366x600xi32>
    %2 = shardc.reduce sum %rows dims = [0] : tensor<1366x600xf32> -> tensor<600xf32>
    shardc.yield %2 : tensor<600xf32>
  }
  return %0 : tensor<600xf32>
}
)mlir");
  ASSERT_TRUE(succeeded(shrinkSizes(*module)));
  EXPECT_EQ(getSizes(*module), (std::vector<int64_t>{6, 2, 2, 2}));
  module->walk([](IotaOp iota) {
    EXPECT_EQ(*iota.getMicrobatch(), (ArrayRef<int64_t>{3, 2}));
  });
}

TEST_F(ShrinkSizesTest, SizesOfDifferentMicrobatchesStay) {
  parse(R"mlir(
shardc.mesh @mesh <["a" = 2]>
func.func @f(%x: tensor<48x8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = shardc.accumulate 2 of (%x) : (tensor<48x8xf32>) -> tensor<8xf32> {
  ^bb0(%rows: tensor<24x8xf32>):
    %1 = shardc.reduce sum %rows dims = [0] : tensor<24x8xf32> -> tensor<8xf32>
    shardc.yield %1 : tensor<8xf32>
  }
  %2 = shardc.accumulate 3 of (%x) : (tensor<48x8xf32>) -> tensor<8xf32> {
  ^bb0(%rows: tensor<16x8xf32>):
    %3 = shardc.reduce sum %rows dims = [0] : tensor<16x8xf32> -> tensor<8xf32>
    shardc.yield %3 : tensor<8xf32>
  }
  return %0, %2 : tensor<8xf32>, tensor<8xf32>
}
)mlir");
  ASSERT_TRUE(succeeded(shrinkSizes(*module)));
  EXPECT_EQ(getSizes(*module), (std::vector<int64_t>{48, 2}));
}

TEST_F(ShrinkSizesTest, ManyDevices) {
  parse(R"mlir(
shardc.mesh @mesh <["a" = 1024, "one" = 1, "b" = 512]>
func.func @f(%x: tensor<524288x16xf32>) {
  return
}
)mlir");
  ASSERT_TRUE(succeeded(shrinkSizes(*module)));
  MeshAxes mesh(*module->getOps<MeshOp>().begin());
  EXPECT_EQ(mesh.getSize(1), 1);
  EXPECT_LE(mesh.getNumShards(AxisSet(7)), 64);
  std::vector<int64_t> sizes = getSizes(*module);
  EXPECT_TRUE(isCutAlike(524288, {1024, 512}, sizes[0],
                         {mesh.getSize(0), mesh.getSize(2)}));
  EXPECT_TRUE(isCutAlike(16, {1024, 512}, sizes[1],
                         {mesh.getSize(0), mesh.getSize(2)}));
}

TEST_F(ShrinkSizesTest, TooManyDevices) {
  parse(R"mlir(
shardc.mesh @mesh <["a" = 2, "b" = 2, "c" = 2, "d" = 2, "e" = 2, "f" = 2, "g" = 2]>
func.func @f(%x: tensor<128xf32>) {
  return
}
)mlir");
  std::string said;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  EXPECT_TRUE(failed(shrinkSizes(*module)));
  EXPECT_EQ(said,
            "the partition cannot be verified on 128 devices, and no mesh "
            "of at most 64 cuts its dimensions alike; give smaller sizes "
            "with --mesh");
}

} // namespace
