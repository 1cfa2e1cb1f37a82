//===- RoundingBoundTest.cpp - Bounds of rounding errors ------------------===//

#include "InterpreterTest.h"

#include "shardc/Interpreter/RoundingBound.h"

#include <random>

using namespace mlir;
using namespace shardc;

namespace {

class RoundingBoundTest : public InterpreterTest {
protected:
  /// The bound of the only op of @f, which is `line`.
  RoundingBound derive(const std::string &type, const std::string &line,
                       ArrayRef<RoundingBound> operands, const Tensor &result,
                       const Tensor *divisor = nullptr) {
    parse("func.func @f(%x: " + type + ", %y: " + type + ") {\n %r = shardc." +
          line + "\n return\n}");
    auto function = *module->getOps<func::FuncOp>().begin();
    return deriveBound(&function.getBody().front().front(), result, operands,
                       divisor);
  }
};

TEST_F(RoundingBoundTest, Measure) {
  RoundingBound bound = measure(make({3}, {-0.75, 6, 0}));
  EXPECT_EQ(bound.magnitude, 6);
  EXPECT_EQ(bound.quantum, -2);
  EXPECT_EQ(bound.roundings, 0);
}

TEST_F(RoundingBoundTest, IntegersAreExact) {
  RoundingBound x = measure(make({4}, {1, 2, 3, -3}));
  RoundingBound sum =
      derive("tensor<4xf32>",
             "dot_general %x, %y contracting = [0] x [0] : tensor<4xf32>, "
             "tensor<4xf32> -> tensor<f32>",
             {x, x}, Tensor({}, 23));
  EXPECT_EQ(sum.magnitude, 36);
  EXPECT_EQ(sum.quantum, 0);
  EXPECT_GT(sum.roundings, 0);
  EXPECT_EQ(sum.getTolerance(Tensor({}, 23)), 0);
  // Not if they are so large that their sum is rounded.
  x.magnitude = 1e15;
  EXPECT_GT(derive("tensor<4xf32>",
                   "reduce sum %x dims = [0] : tensor<4xf32> -> tensor<f32>",
                   {x}, Tensor({}, 1e15))
                    .getTolerance(Tensor({}, 1e15)) +
                derive("tensor<4096xf32>",
                       "reduce sum %x dims = [0] : tensor<4096xf32> -> "
                       "tensor<f32>",
                       {x}, Tensor({}, 1e15))
                    .getTolerance(Tensor({}, 1e15)),
            0);
}

TEST_F(RoundingBoundTest, SameFunctionOfSameBits) {
  RoundingBound x = measure(make({1}, {0.1}));
  RoundingBound bound = derive("tensor<1xf32>", "exp %x : tensor<1xf32>", {x},
                               Tensor({1}, 1.1051709));
  EXPECT_TRUE(bound.isKnown);
  EXPECT_EQ(bound.getTolerance(Tensor({1}, 1.1)), 0);
  x.roundings = 1;
  EXPECT_FALSE(derive("tensor<1xf32>", "exp %x : tensor<1xf32>", {x},
                      Tensor({1}, 1.1051709))
                   .isKnown);
}

TEST_F(RoundingBoundTest, DivisionByAPowerOfTwoIsExact) {
  RoundingBound sum = measure(make({1}, {5}));
  sum.roundings = 4;
  Tensor eight({1}, 8), three({1}, 3);
  std::string div = "div %x, %y : tensor<1xf32>";
  RoundingBound exact = derive("tensor<1xf32>", div, {sum, measure(eight)},
                               Tensor({1}, 0.625), &eight);
  EXPECT_EQ(exact.getTolerance(Tensor({1}, 0.625)), 0);
  RoundingBound rounded = derive("tensor<1xf32>", div, {sum, measure(three)},
                                 Tensor({1}, 5.0 / 3), &three);
  EXPECT_GT(rounded.getTolerance(Tensor({1}, 5.0 / 3)), 0);
  EXPECT_LT(rounded.getTolerance(Tensor({1}, 5.0 / 3)), 1e-14);
}

TEST_F(RoundingBoundTest, SumsInAnyOrderAreWithin) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> terms(64);
    for (double &term : terms)
      term = static_cast<double>(random() % 2000) / 300 - 3;
    double forwards = 0, backwards = 0;
    for (double term : terms)
      forwards += term;
    for (double term : llvm::reverse(terms))
      backwards += term;
    Tensor sum({}, forwards);
    RoundingBound bound =
        derive("tensor<64xf32>",
               "reduce sum %x dims = [0] : tensor<64xf32> -> tensor<f32>",
               {measure(make({64}, terms))}, sum);
    EXPECT_LE(std::abs(forwards - backwards), bound.getTolerance(sum));
    EXPECT_LT(bound.getTolerance(sum), 1e-11);
  }
}

} // namespace
