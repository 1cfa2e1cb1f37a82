//===- ShrinkSizesTest.cpp - Small sizes are cut as large ones are --------===//

#include "InterpreterTest.h"

#include "shardc/Analysis/LayoutAttributes.h"
#include "shardc/Analysis/OpLayouts.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
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
          "  %0 = shardc.relu %x {shardc.strategy = #shardc.strategy<[{" +
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
  MeshAxes mesh = getMeshAxes(*module->getOps<MeshOp>().begin());
  EXPECT_EQ(mesh.getSize(1), 1);
  EXPECT_LE(mesh.getNumShards(AxisSet(7)), 64);
  std::vector<int64_t> sizes = getSizes(*module);
  EXPECT_TRUE(isCutAlike(524288, {1024, 512}, sizes[0],
                         {mesh.getSize(0), mesh.getSize(2)}));
  EXPECT_TRUE(isCutAlike(16, {1024, 512}, sizes[1],
                         {mesh.getSize(0), mesh.getSize(2)}));
}

/// What becomes of a dimension of `size` over `mesh` that an op has in strided
/// shards of `list`, and of mesh and list.
struct Strided {
  std::vector<int64_t> axes;
  int64_t size = 0;
  std::vector<std::string> list;
};

Strided shrinkStrided(StringRef mesh, StringRef list, int64_t size,
                      MLIRContext &context) {
  std::string type = "tensor<" + std::to_string(size) + "xf32>";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      ("shardc.mesh @mesh <[" + mesh + "]>\nfunc.func @f(%x: " + type +
       ") -> " + type +
       " {\n  %0 = shardc.relu %x {shardc.strategy = #shardc.strategy<[{" +
       list + "}]>} : " + type + "\n  return %0 : " + type + "\n}\n")
          .str(),
      &context);
  Strided result;
  if (!module || failed(shrinkSizes(*module)))
    return result;
  MeshAxes axes = getMeshAxes(*module->getOps<MeshOp>().begin());
  for (int axis = 0; axis < axes.getNumAxes(); ++axis)
    result.axes.push_back(axes.getSize(axis));
  result.size = getSizes(*module)[0];
  module->walk([&](ReluOp op) {
    StrategyAttr strategy = getStrategyAttr(op);
    for (StringAttr entry : strategy.getFactors()[0].getAxes())
      result.list.push_back(entry.str());
  });
  return result;
}

TEST_F(ShrinkSizesTest, GapsStayTheAxesThatLeftThem) {
  // More than "b", and less than both.
  Strided one =
      shrinkStrided(R"("a" = 64, "b" = 8)", R"("*64", "b")", 4096, context);
  EXPECT_EQ(one.axes, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(one.size, 6);
  EXPECT_EQ(one.list, (std::vector<std::string>{"*3", "b"}));
  // Nobody knows which of the two it was.
  Strided two =
      shrinkStrided(R"("a" = 16, "b" = 16)", R"("*16", "b")", 4096, context);
  EXPECT_EQ(two.axes, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(two.list, (std::vector<std::string>{"*2", "b"}));
  // One axis or two of them.
  Strided three = shrinkStrided(R"("a" = 4, "b" = 64, "c" = 16)",
                                R"("*64", "c")", 8192, context);
  ASSERT_EQ(three.axes.size(), 3u);
  EXPECT_EQ(three.axes[1], three.axes[0] * three.axes[2]);
  EXPECT_EQ(three.list[0], "*" + std::to_string(three.axes[1]));
  EXPECT_EQ(three.size % (three.axes[1] * three.axes[2]), 0);
}

TEST_F(ShrinkSizesTest, AnAxisBesideItsGapCutsTwice) {
  Strided twice = shrinkStrided(R"("a" = 16, "b" = 8)", R"("*16", "b", "a")",
                                4096, context);
  ASSERT_EQ(twice.axes.size(), 2u);
  auto [a, b] = std::pair(twice.axes[0], twice.axes[1]);
  EXPECT_EQ(twice.list,
            (std::vector<std::string>{"*" + std::to_string(a), "b", "a"}));
  EXPECT_EQ(twice.size % (a * b * a), 0);
  EXPECT_LT(twice.size, 4096);
}

TEST_F(ShrinkSizesTest, GapsThatNoAxesLeftKeepTheMesh) {
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  EXPECT_EQ(
      shrinkStrided(R"("a" = 64, "b" = 8)", R"("*5", "b")", 4000, context).size,
      0);
  // Where there are few devices the mesh stays anyway.
  EXPECT_EQ(
      shrinkStrided(R"("a" = 4, "b" = 8)", R"("*5", "b")", 4000, context).axes,
      (std::vector<int64_t>{4, 8}));
}

/// The error if `body` cannot be checked on so many axes of two devices.
static std::string getRefusal(int axes, StringRef body, MLIRContext &context) {
  std::string mesh, said;
  for (int axis = 0; axis < axes; ++axis)
    mesh += (axis ? ", \"a" : "\"a") + std::to_string(axis) + "\" = 2";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      ("shardc.mesh @mesh <[" + mesh + "]>\n" + body).str(), &context);
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  bool isShrunk = succeeded(shrinkSizes(*module));
  EXPECT_EQ(isShrunk, said.empty());
  return said;
}

TEST_F(ShrinkSizesTest, TooManyDevices) {
  StringRef small = R"mlir(
func.func @f(%x: tensor<128xf32>) -> tensor<128xf32> {
  %0 = shardc.neg %x : tensor<128xf32>
  return %0 : tensor<128xf32>
}
)mlir";
  // All axes shard on any mesh.
  EXPECT_EQ(getRefusal(7, small, context), "");
  EXPECT_EQ(getRefusal(11, small, context),
            "the partition cannot be verified on 2048 devices, and no mesh "
            "small enough cuts its dimensions alike; give smaller sizes with "
            "--mesh");
  // These sizes stay.
  StringRef large = R"mlir(
func.func @f(%x: tensor<4096x512xf32>) -> tensor<512x4096xf32> {
  %0 = shardc.reshape %x : tensor<4096x512xf32> -> tensor<512x4096xf32>
  return %0 : tensor<512x4096xf32>
}
)mlir";
  EXPECT_EQ(getRefusal(6, large, context), "");
  EXPECT_EQ(getRefusal(7, large, context),
            "the partition cannot be verified on 128 devices, and no mesh "
            "small enough cuts its dimensions alike; give smaller sizes with "
            "--mesh");
}

} // namespace
