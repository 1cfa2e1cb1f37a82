//===- EvaluateCollectiveTest.cpp - Collectives against values by hand ----===//

#include "InterpreterTest.h"

#include "shardc/Interpreter/Placement.h"

#include <cmath>

using namespace shardc;
using Elements = std::vector<double>;

namespace {

class EvaluateCollectiveTest : public InterpreterTest {
protected:
  /// What the op in `line`, of operand %0 of `type`, makes on the mesh a=2, b=3
  /// of operands that hold 0, 1, ... on device 0 and 100 more on
  /// each next one. One list per device.
  std::vector<Elements> evaluate(const std::string &line,
                                 const std::string &type) {
    parse("shardc.mesh @mesh <[\"a\" = 2, \"b\" = 3]>\nfunc.func @f(%0: " +
          type + ") {\n %r = shardc." + line + "\n return\n}");
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    mlir::Operation *op = &function.getBody().front().front();
    EXPECT_TRUE(isCollective(op));
    auto operand =
        mlir::cast<mlir::RankedTensorType>(function.getArgument(0).getType());
    DeviceTensors tensors;
    for (int device = 0; device < 6; ++device) {
      tensors.emplace_back(operand.getShape(), 0);
      for (size_t i = 0; i < tensors.back().data.size(); ++i)
        tensors.back().data[i] = 100.0 * device + static_cast<double>(i);
    }
    Devices devices(MeshAxes({{"a", 2}, {"b", 3}}));
    auto shape = mlir::cast<mlir::RankedTensorType>(op->getResult(0).getType())
                     .getShape();
    std::vector<Elements> results;
    for (const Tensor &result : evaluateCollective(op, 0, tensors, devices)) {
      EXPECT_EQ(shape, llvm::ArrayRef<int64_t>(result.shape));
      results.push_back(result.data);
    }
    return results;
  }
};

// Devices of a row share a: 0 1 2, then 3 4 5. Those of a column share b.

TEST_F(EvaluateCollectiveTest, AllReduce) {
  std::vector<Elements> sums =
      evaluate("all_reduce sum %0 over @mesh[\"a\"] : (tensor<2xf32>) -> "
               "tensor<2xf32>",
               "tensor<2xf32>");
  for (int device : {0, 3})
    EXPECT_EQ(sums[device], (Elements{300, 302}));
  for (int device : {2, 5})
    EXPECT_EQ(sums[device], (Elements{700, 702}));
  std::vector<Elements> maxima =
      evaluate("all_reduce max %0 over @mesh[\"a\", \"b\"] : (tensor<2xf32>) "
               "-> tensor<2xf32>",
               "tensor<2xf32>");
  for (const Elements &elements : maxima)
    EXPECT_EQ(elements, (Elements{500, 501}));
}

TEST_F(EvaluateCollectiveTest, AllGather) {
  // Major to minor: the first axis is the slower one. The last shard ends
  // early.
  std::vector<Elements> gathered =
      evaluate("all_gather %0 over @mesh[\"b\", \"a\"] dims = [0] : "
               "(tensor<2xf32>) -> tensor<11xf32>",
               "tensor<2xf32>");
  for (const Elements &elements : gathered)
    EXPECT_EQ(elements,
              (Elements{0, 1, 300, 301, 100, 101, 400, 401, 200, 201, 500}));
  EXPECT_EQ(evaluate("all_gather %0 over @mesh[\"a\"] dims = [1] : "
                     "(tensor<2x1xf32>) -> tensor<2x2xf32>",
                     "tensor<2x1xf32>")[1],
            (Elements{100, 400, 101, 401}));
}

TEST_F(EvaluateCollectiveTest, ReduceScatter) {
  std::vector<Elements> scattered =
      evaluate("reduce_scatter sum %0 over @mesh[\"b\"] dims = [0] : "
               "(tensor<5xf32>) -> tensor<2xf32>",
               "tensor<5xf32>");
  EXPECT_EQ(scattered[0], (Elements{300, 303}));
  EXPECT_EQ(scattered[1], (Elements{306, 309}));
  EXPECT_EQ(scattered[5][0], 1212);
  EXPECT_TRUE(std::isnan(scattered[5][1]));
}

TEST_F(EvaluateCollectiveTest, AllToAll) {
  std::vector<Elements> exchanged =
      evaluate("all_to_all %0 over @mesh[\"a\"] split_dim = 1 concat_dim = 0 : "
               "tensor<1x4xf32> -> tensor<2x2xf32>",
               "tensor<1x4xf32>");
  EXPECT_EQ(exchanged[0], (Elements{0, 1, 300, 301}));
  EXPECT_EQ(exchanged[3], (Elements{2, 3, 302, 303}));
}

TEST_F(EvaluateCollectiveTest, CollectivePermute) {
  // Device (a, b) receives from the one whose place in (a, b) order is its own
  // in (b, a) order.
  std::vector<Elements> permuted =
      evaluate("collective_permute %0 over @mesh[\"a\", \"b\"] to [\"b\", "
               "\"a\"] : tensor<1xf32>",
               "tensor<1xf32>");
  Elements senders;
  for (const Elements &elements : permuted)
    senders.push_back(elements[0] / 100);
  EXPECT_EQ(senders, (Elements{0, 2, 4, 1, 3, 5}));
  // A ring over b.
  senders.clear();
  for (const Elements &elements :
       evaluate("collective_permute %0 over @mesh[\"b\"] to [\"b\"] sources = "
                "[2, 0, 1] : tensor<1xf32>",
                "tensor<1xf32>"))
    senders.push_back(elements[0] / 100);
  EXPECT_EQ(senders, (Elements{2, 0, 1, 5, 3, 4}));
}

TEST_F(EvaluateCollectiveTest, Slice) {
  std::vector<Elements> slices =
      evaluate("slice %0 over @mesh[\"b\", \"a\"] dim = 0 : tensor<7xf32> -> "
               "tensor<2xf32>",
               "tensor<7xf32>");
  EXPECT_EQ(slices[0], (Elements{0, 1}));
  EXPECT_EQ(slices[3], (Elements{302, 303}));
  EXPECT_EQ(slices[4][0], 406);
  EXPECT_TRUE(std::isnan(slices[4][1]));
  EXPECT_TRUE(std::isnan(slices[2][0]));
}

} // namespace
