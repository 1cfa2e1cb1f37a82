//===- PartitionCheckTest.cpp - Planted faults are found ------------------===//

#include "InterpreterTest.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Interpreter/PartitionCheck.h"
#include "shardc/Transforms/Passes.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "gmock/gmock.h"

using namespace mlir;
using namespace shardc;
using testing::HasSubstr;

namespace {

/// Partitions a program, lets the test change it, and checks it.
class PartitionCheckTest : public InterpreterTest {
protected:
  /// The function of `text`, partitioned; `global` keeps the original.
  func::FuncOp partition(StringRef text) {
    parse(text);
    PassManager planner(&context);
    planner.addPass(createPropagatePass());
    EXPECT_TRUE(succeeded(planner.run(*module)));
    numberValues(*module);
    global = module->clone();
    PassManager partitioner(&context);
    partitioner.addPass(createInsertReshardsPass());
    partitioner.addPass(createPartitionPass());
    EXPECT_TRUE(succeeded(partitioner.run(*module)));
    return *module->getOps<func::FuncOp>().begin();
  }

  /// The first diagnostic of checkPartition, `LINE: message`, or "" if there is
  /// none.
  std::string check() {
    EXPECT_TRUE(succeeded(verify(*module)));
    std::string said;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (said.empty())
        if (auto loc =
                diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
          said = std::to_string(loc.getLine()) + ": " + diagnostic.str();
    });
    FailureOr<PartitionSummary> checked = checkPartition(*global, *module);
    EXPECT_EQ(failed(checked), !said.empty());
    if (succeeded(checked))
      summary = *checked;
    return said;
  }

  /// Replaces an op by its operand.
  void drop(Operation *op) {
    op->replaceAllUsesWith(op->getOperands());
    op->erase();
  }

  OwningOpRef<ModuleOp> global;
  PartitionSummary summary;
};

// The GEMM is summed over b; rows stay over a.
constexpr llvm::StringLiteral gemm = R"mlir(
shardc.mesh @mesh <["a" = 2, "b" = 2]>
func.func @f(
    %x: tensor<4x6xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {"b"}]>},
    %w: tensor<6x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"b"}, {}]>})
    -> (tensor<4x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = shardc.dot_general %x, %w contracting = [1] x [0] : tensor<4x6xf32>, tensor<6x4xf32> -> tensor<4x4xf32>
  %1 = shardc.tanh %0 : tensor<4x4xf32>
  %2 = shardc.sub %1, %0 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
)mlir";

TEST_F(PartitionCheckTest, NothingIsWrong) {
  partition(gemm);
  EXPECT_EQ(check(), "");
  // The GEMM as partial sums and reduced, two ops, and the result.
  EXPECT_EQ(summary.values, 5);
  EXPECT_EQ(summary.exact, 5);
  EXPECT_EQ(summary.ops, 4);
  EXPECT_EQ(summary.devices, 4);
  EXPECT_EQ(summary.nonFinite, 0);
}

TEST_F(PartitionCheckTest, MissingAllReduce) {
  partition(gemm);
  drop(find<AllReduceOp>());
  EXPECT_EQ(check(), "8: 'shardc.tanh' op has operand 0 laid out [{\"a\"}, {}] "
                     "unreduced={\"b\"}, of which it makes a result laid out "
                     "[{\"a\"}, {}]: a partial sum is not reduced");
}

TEST_F(PartitionCheckTest, ReducedTwice) {
  partition(gemm);
  auto reduce = find<AllReduceOp>();
  OpBuilder builder(reduce);
  builder.setInsertionPointAfter(reduce);
  Operation *again = builder.clone(*reduce);
  reduce.getResult(0).replaceAllUsesWith(again->getResult(0));
  again->setOperand(0, reduce.getResult(0));
  again->setLoc(FileLineColLoc::get(&context, "test.mlir", 70, 1));
  EXPECT_THAT(
      check(),
      HasSubstr("70: 'shardc.all_reduce' op adds up over \"b\" an operand"));
}

TEST_F(PartitionCheckTest, ReducedOverTheWrongAxis) {
  partition(gemm);
  find<AllReduceOp>().setAxesAttr(Builder(&context).getStrArrayAttr({"a"}));
  EXPECT_THAT(
      check(),
      HasSubstr("7: 'shardc.all_reduce' op adds up over \"a\" an operand"));
}

TEST_F(PartitionCheckTest, MaximumInsteadOfSum) {
  partition(gemm);
  find<AllReduceOp>().setKind(ReductionKind::Max);
  EXPECT_THAT(check(), HasSubstr("7: 'shardc.all_reduce' op diverges"));
}

TEST_F(PartitionCheckTest, OperandsSwapped) {
  partition(gemm);
  auto sub = find<SubOp>();
  sub->setOperands({sub.getRhs(), sub.getLhs()});
  std::string said = check();
  EXPECT_THAT(said, HasSubstr("9: 'shardc.sub' op diverges from the global "
                              "program @f: its value, globally "
                              "'tensor<4x4xf32>', laid out [{\"a\"}, {}], has "
                              "at index [0, 0] "));
  EXPECT_THAT(said, HasSubstr(" on device 0 (a=0, b=0), expected "));
}

TEST_F(PartitionCheckTest, ResultIsNotWhereItIsSaidToBe) {
  func::FuncOp function = partition(gemm);
  auto mesh = FlatSymbolRefAttr::get(&context, "mesh");
  function.setResultAttr(
      0, shardingAttrName,
      ShardingAttr::getClosed(mesh, {{StringAttr::get(&context, "b")}, {}}));
  EXPECT_THAT(check(), HasSubstr("10: 'func.return' op diverges"));
}

TEST_F(PartitionCheckTest, UnknownOp) {
  partition(gemm);
  auto tanh = find<TanhOp>();
  OpBuilder builder(tanh);
  auto relu =
      builder.create<ReluOp>(tanh.getLoc(), tanh.getType(), tanh.getOperand());
  tanh.replaceAllUsesWith(relu.getResult());
  tanh.erase();
  EXPECT_THAT(check(), HasSubstr("8: 'shardc.relu' op is not an op that the "
                                 "reference interpreter knows"));
}

// Five rows over two devices; their sum needs a mask.
constexpr llvm::StringLiteral uneven = R"mlir(
shardc.mesh @mesh <["a" = 2]>
func.func @f(
    %x: tensor<5x3xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<3xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}]>}) {
  %0 = shardc.reduce sum %x dims = [0] : tensor<5x3xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
)mlir";

TEST_F(PartitionCheckTest, UnmaskedPadding) {
  partition(uneven);
  EXPECT_EQ(check(), "");
  drop(find<MaskOp>());
  std::string said = check();
  EXPECT_THAT(said, HasSubstr("6: 'shardc.reduce' op diverges"));
  EXPECT_THAT(said, HasSubstr("laid out [{}] unreduced={\"a\"}, has at index "
                              "[0] summed to nan on device 0 (a=0)"));
  EXPECT_THAT(said, HasSubstr("padding is NaN, so padding counts here"));
}

TEST_F(PartitionCheckTest, MaskWithTheWrongValue) {
  partition(uneven);
  find<MaskOp>().setFill(APFloat(1.0));
  EXPECT_THAT(check(), HasSubstr("6: 'shardc.reduce' op diverges"));
}

TEST_F(PartitionCheckTest, MaskOfTooLittle) {
  partition(uneven);
  // Six rows would be three per device as well.
  find<MaskOp>().setGlobalShape({6, 3});
  EXPECT_THAT(check(), HasSubstr("6: 'shardc.reduce' op diverges"));
}

// A replicated value that is wanted by rows, on axes of the same size.
constexpr llvm::StringLiteral sliced = R"mlir(
shardc.mesh @mesh <["a" = 2, "b" = 2]>
func.func @f(
    %x: tensor<4x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {}]>},
    %y: tensor<4x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}, {}]>})
    -> (tensor<4x4xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = shardc.sub %x, %y : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
)mlir";

TEST_F(PartitionCheckTest, SliceOverTheWrongAxis) {
  partition(sliced);
  EXPECT_EQ(check(), "");
  find<SliceOp>().setAxesAttr(Builder(&context).getStrArrayAttr({"b"}));
  EXPECT_THAT(check(),
              HasSubstr("7: 'shardc.sub' op has operand 1 in the wrong "
                        "place: position 0 of dimension 0 on device 1 "
                        "(a=0, b=1) is element 2 of the global tensor, "
                        "expected element 0"));
}

TEST_F(PartitionCheckTest, SliceOfTheWrongDimension) {
  partition(sliced);
  auto slice = find<SliceOp>();
  slice.setDim(1);
  slice.getResult().setType(
      RankedTensorType::get({4, 2}, Builder(&context).getF32Type()));
  OpBuilder builder(slice);
  builder.setInsertionPointAfter(slice);
  // That the shapes fit again.
  auto reshaped = builder.create<ReshapeOp>(
      slice.getLoc(),
      RankedTensorType::get({2, 4}, Builder(&context).getF32Type()),
      slice.getResult());
  slice.getResult().replaceAllUsesExcept(reshaped, reshaped);
  EXPECT_THAT(check(),
              HasSubstr("7: 'shardc.sub' op has operand 1 in the wrong "
                        "place: position 2 of dimension 1 on device 0 "
                        "(a=0, b=0) is element 0 of the global tensor, "
                        "expected element 2"));
}

// Columns over both axes, gathered.
constexpr llvm::StringLiteral gathered = R"mlir(
shardc.mesh @mesh <["a" = 2, "b" = 3]>
func.func @f(
    %x: tensor<7xf32> {shardc.sharding = #shardc.sharding<@mesh, [{"a", "b"}]>})
    -> (tensor<7xf32> {shardc.sharding = #shardc.sharding<@mesh, [{}]>}) {
  return %x : tensor<7xf32>
}
)mlir";

TEST_F(PartitionCheckTest, GatheredInTheWrongOrder) {
  partition(gathered);
  EXPECT_EQ(check(), "");
  // The shard that ends early is not the last one then.
  find<AllGatherOp>().setAxesAttr(
      Builder(&context).getStrArrayAttr({"b", "a"}));
  EXPECT_THAT(check(), HasSubstr("6: 'shardc.all_gather' op diverges from the "
                                 "global program @f: its value, globally "
                                 "'tensor<7xf32>', laid out as this op leaves "
                                 "[{\"a\", \"b\"}], is held by no device at "
                                 "[4]"));
}

// A sum of thirds is rounded, and differently in another order.
constexpr llvm::StringLiteral rounded = R"mlir(
shardc.mesh @mesh <["a" = 4]>
func.func @f(
    %x: tensor<12xf64> {shardc.sharding = #shardc.sharding<@mesh, [{"a"}]>})
    -> (tensor<f64> {shardc.sharding = #shardc.sharding<@mesh, []>}) {
  %0 = shardc.constant dense<0.3> : tensor<12xf64>
  %1 = shardc.mul %x, %0 : tensor<12xf64>
  %2 = shardc.reduce sum %1 dims = [0] : tensor<12xf64> -> tensor<f64>
  return %2 : tensor<f64>
}
)mlir";

TEST_F(PartitionCheckTest, RoundingIsNoFault) {
  partition(rounded);
  EXPECT_EQ(check(), "");
  EXPECT_LT(summary.exact, summary.values);
  // A part in 10^12 is one.
  auto constant = find<ConstantOp>();
  auto type = cast<RankedTensorType>(constant.getType());
  constant.setValueAttr(DenseElementsAttr::get(type, 0.3 + 1e-12));
  EXPECT_THAT(check(), HasSubstr("6: 'shardc.constant' op diverges"));
  // So is a part in a million after ops of which nothing is known.
  constant.setValueAttr(DenseElementsAttr::get(type, 0.3 + 1e-6));
  constant->removeAttr(idAttrName);
  find<MulOp>()->removeAttr(idAttrName);
  EXPECT_THAT(check(), HasSubstr("8: 'shardc.reduce' op diverges"));
}

} // namespace
