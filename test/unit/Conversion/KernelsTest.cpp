//===- KernelsTest.cpp - Generated kernels against interpretation ---------===//
//
// Every class of loop nest, over shapes with single, odd and vector-sized
// dimensions and with several iterations.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace shardc {
namespace {

std::string tensor(std::vector<int64_t> shape, const char *type = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + type + ">";
}

const std::vector<std::pair<int64_t, int64_t>> matrixShapes = {
    {1, 1},   {1, 7},   {5, 1},     {3, 8},    {7, 10},
    {13, 33}, {40, 64}, {130, 100}, {701, 301}};

TEST(Kernels, Elementwise) {
  for (auto [m, n] : matrixShapes) {
    std::string t = tensor({m, n}), p = tensor({m, n}, "i1"), s = tensor({n});
    expectKernelMatches("(" + t + ", " + t + ", " + s + ") -> (" + t + ", " +
                        p + ") {\n^bb0(%a: " + t + ", %b: " + t + ", %c: " + s +
                        "):\n %0 = shardc.broadcast %c dims = [1] : " + s +
                        " -> " + t + "\n %1 = shardc.mul %a, %0 : " + t +
                        "\n %2 = shardc.compare gt %1, %b : " + t + " -> " + p +
                        "\n %3 = shardc.select %2, %a, %1 : " + p + ", " + t +
                        "\n shardc.yield %3, %2 : " + t + ", " + p + "\n}");
  }
}

TEST(Kernels, FlatInManyIterations) {
  for (int64_t size : {4096, 131072, 200003, 1100003}) {
    std::string t = tensor({size});
    expectKernelMatches("(" + t + ", " + t + ") -> " + t + " {\n^bb0(%a: " + t +
                        ", %b: " + t + "):\n %0 = shardc.sub %a, %b : " + t +
                        "\n shardc.yield %0 : " + t + "\n}");
  }
}

TEST(Kernels, ReduceEveryWay) {
  for (auto [m, n] : matrixShapes) {
    std::string t = tensor({m, n});
    auto reduce = [&](const char *dims, std::string result, const char *kind) {
      expectKernelMatches("(" + t + ") -> " + result + " {\n^bb0(%a: " + t +
                          "):\n %0 = shardc.reduce " + kind + " %a dims = [" +
                          dims + "] : " + t + " -> " + result +
                          "\n shardc.yield %0 : " + result + "\n}");
    };
    for (const char *kind : {"sum", "max"}) {
      reduce("0", tensor({n}), kind);
      reduce("1", tensor({m}), kind);
      reduce("0, 1", tensor({}), kind);
    }
  }
}

// Loops for the CPU take buffers wherever they are; emulation stops at what a
// GPU would not do.
TEST(Kernels, BuffersAnywhere) {
  const char *body = "(tensor<40xf32>) -> tensor<40xf32> {\n"
                     "^bb0(%a: tensor<40xf32>):\n"
                     " %0 = shardc.neg %a : tensor<40xf32>\n"
                     " shardc.yield %0 : tensor<40xf32>\n}";
  KernelHarness onCPU(body), onGPU(body, Mapping::EmulatedGPU);
  std::mt19937 random(1);
  std::vector<Tensor> operands = onCPU.makeOperands(random);
  onCPU.setOffset(4);
  EXPECT_EQ(onCPU.run(operands)[0].data, onCPU.interpret(operands)[0].data);
  onGPU.setOffset(4);
  EXPECT_DEATH(onGPU.run(operands), "");
}

// More than the blocks of a grid have in one turn, and rows and columns that
// take the largest blocks.
TEST(Kernels, ReductionsBeyondOneGrid) {
  auto softmax = [](int64_t m, int64_t n) {
    std::string t = tensor({m, n}), v = tensor({m});
    auto spread = [&](const char *value, const char *result) {
      return " " + std::string(result) + " = shardc.broadcast " + value +
             " dims = [0] : " + v + " -> " + t + "\n";
    };
    expectKernelMatches(
        "(" + t + ") -> (" + t + ", " + v + ") {\n^bb0(%a: " + t +
        "):\n %0 = shardc.reduce max %a dims = [1] : " + t + " -> " + v + "\n" +
        spread("%0", "%1") + " %2 = shardc.sub %a, %1 : " + t +
        "\n %3 = shardc.exp %2 : " + t +
        "\n %4 = shardc.reduce sum %3 dims = [1] : " + t + " -> " + v + "\n" +
        spread("%4", "%5") + " %6 = shardc.div %3, %5 : " + t +
        "\n shardc.yield %6, %4 : " + t + ", " + v + "\n}");
  };
  softmax(17000, 10);
  softmax(1030, 301);
  softmax(2, 9000);
  auto sum = [](int64_t m, int64_t n, const char *dims, std::string result) {
    std::string t = tensor({m, n});
    expectKernelMatches("(" + t + ") -> " + result + " {\n^bb0(%a: " + t +
                        "):\n %0 = shardc.mul %a, %a : " + t +
                        "\n %1 = shardc.reduce sum %0 dims = [" + dims +
                        "] : " + t + " -> " + result +
                        "\n shardc.yield %1 : " + result + "\n}");
  };
  sum(3, 33000, "0", tensor({33000}));
  sum(3001, 12, "0", tensor({12}));
  sum(3001, 10, "0", tensor({10}));
  sum(313, 311, "0, 1", tensor({}));
}

TEST(Kernels, ReduceRankThree) {
  std::string t = "tensor<5x6x11xf32>";
  for (auto [dims, result] : std::vector<std::pair<const char *, const char *>>{
           {"0", "tensor<6x11xf32>"},
           {"1", "tensor<5x11xf32>"},
           {"2", "tensor<5x6xf32>"},
           {"0, 1", "tensor<11xf32>"},
           {"1, 2", "tensor<5xf32>"},
           {"0, 2", "tensor<6xf32>"}})
    expectKernelMatches("(" + t + ") -> " + result + " {\n^bb0(%a: " + t +
                        "):\n %0 = shardc.reduce sum %a dims = [" + dims +
                        "] : " + t + " -> " + result +
                        "\n shardc.yield %0 : " + result + "\n}");
}

TEST(Kernels, SoftmaxOfRows) {
  for (auto [m, n] : matrixShapes) {
    std::string t = tensor({m, n}), r = tensor({m});
    expectKernelMatches(
        "(" + t + ") -> (" + t + ", " + r + ") {\n^bb0(%a: " + t +
        "):\n %m = shardc.reduce max %a dims = [1] : " + t + " -> " + r +
        "\n %mb = shardc.broadcast %m dims = [0] : " + r + " -> " + t +
        "\n %s = shardc.sub %a, %mb : " + t + "\n %e = shardc.exp %s : " + t +
        "\n %z = shardc.reduce sum %e dims = [1] : " + t + " -> " + r +
        "\n %zb = shardc.broadcast %z dims = [0] : " + r + " -> " + t +
        "\n %p = shardc.div %e, %zb : " + t + "\n %l = shardc.log %z : " + r +
        "\n shardc.yield %p, %l : " + t + ", " + r + "\n}");
  }
}

// Forward and backward of a cross-entropy. A GPU's threads keep rows that are
// short enough, whole and ragged ones, in warps and in blocks of both sizes; of
// the last two they read the row in each pass.
TEST(Kernels, CrossEntropyOfRows) {
  auto shapes = matrixShapes;
  for (int64_t n : {33, 400, 1000, 1021, 1025, 4100, 5000, 8192, 12285, 16384})
    shapes.push_back({3, n});
  shapes.push_back({20000, 10});
  for (auto [m, n] : shapes) {
    std::string t = tensor({m, n}), i = tensor({m, n}, "i32"),
                p = tensor({m, n}, "i1"), r = tensor({m}),
                l = tensor({m}, "i32");
    expectKernelMatches(
        "(" + t + ", " + l + ") -> (" + r + ", " + r + ", " + t +
        ") {\n^bb0(%a: " + t + ", %y: " + l +
        "):\n %m = shardc.reduce max %a dims = [1] : " + t + " -> " + r +
        "\n %mb = shardc.broadcast %m dims = [0] : " + r + " -> " + t +
        "\n %s = shardc.sub %a, %mb : " + t + "\n %e = shardc.exp %s : " + t +
        "\n %z = shardc.reduce sum %e dims = [1] : " + t + " -> " + r +
        "\n %c = shardc.iota dim = 1 : " + i +
        "\n %yb = shardc.broadcast %y dims = [0] : " + l + " -> " + i +
        "\n %is = shardc.compare eq %c, %yb : " + i + " -> " + p +
        "\n %zero = shardc.constant dense<0.0> : " + t +
        "\n %one = shardc.constant dense<1.0> : " + t +
        "\n %k = shardc.select %is, %s, %zero : " + p + ", " + t +
        "\n %v = shardc.reduce sum %k dims = [1] : " + t + " -> " + r +
        "\n %l = shardc.log %z : " + r +
        "\n %zb = shardc.broadcast %z dims = [0] : " + r + " -> " + t +
        "\n %q = shardc.div %e, %zb : " + t +
        "\n %h = shardc.select %is, %one, %zero : " + p + ", " + t +
        "\n %g = shardc.sub %q, %h : " + t +
        "\n shardc.yield %l, %v, %g : " + r + ", " + r + ", " + t + "\n}");
  }
}

TEST(Kernels, ColumnSumsWithResult) {
  for (auto [m, n] : matrixShapes) {
    std::string t = tensor({m, n}), c = tensor({n});
    expectKernelMatches(
        "(" + t + ", " + t + ") -> (" + t + ", " + c + ") {\n^bb0(%a: " + t +
        ", %b: " + t + "):\n %0 = shardc.mul %a, %b : " + t +
        "\n %1 = shardc.reduce sum %0 dims = [0] : " + t + " -> " + c +
        "\n shardc.yield %0, %1 : " + t + ", " + c + "\n}");
  }
}

void expectDot(int64_t m, int64_t n, int64_t k, bool transposeLhs,
               bool transposeRhs) {
  std::string a = transposeLhs ? tensor({k, m}) : tensor({m, k});
  std::string b = transposeRhs ? tensor({n, k}) : tensor({k, n});
  std::string c = tensor({m, n}), bias = tensor({n});
  expectKernelMatches(
      "(" + a + ", " + b + ", " + bias + ") -> " + c + " {\n^bb0(%a: " + a +
      ", %b: " + b + ", %c: " + bias +
      "):\n %0 = shardc.dot_general %a, %b contracting = [" +
      (transposeLhs ? "0" : "1") + "] x [" + (transposeRhs ? "1" : "0") +
      "] : " + a + ", " + b + " -> " + c +
      "\n %1 = shardc.broadcast %c dims = [1] : " + bias + " -> " + c +
      "\n %2 = shardc.add %0, %1 : " + c + "\n %3 = shardc.tanh %2 : " + c +
      "\n shardc.yield %3 : " + c + "\n}");
}

TEST(Kernels, ProductsOfEveryShape) {
  std::mt19937 random(7);
  auto pick = [&](int64_t limit) { return int64_t(random() % limit) + 1; };
  for (int round = 0; round < 40; ++round)
    expectDot(pick(40), pick(40), pick(40), random() % 2, random() % 2);
  for (bool transposeLhs : {false, true})
    for (bool transposeRhs : {false, true}) {
      expectDot(128, 32, 10, transposeLhs, transposeRhs);
      expectDot(16, 1, 128, transposeLhs, transposeRhs);
      expectDot(128, 1, 16, transposeLhs, transposeRhs);
      expectDot(1, 16, 128, transposeLhs, transposeRhs);
      expectDot(1, 1, 37, transposeLhs, transposeRhs);
      expectDot(128, 16, 1, transposeLhs, transposeRhs);
      expectDot(700, 70, 40, transposeLhs, transposeRhs);
    }
}

TEST(Kernels, BatchedAndCollapsedProducts) {
  expectKernelMatches(
      "(tensor<3x5x7xf32>, tensor<3x7x9xf32>) -> tensor<3x5x9xf32> "
      "{\n^bb0(%a: tensor<3x5x7xf32>, %b: tensor<3x7x9xf32>):\n"
      " %0 = shardc.dot_general %a, %b batching = [0] x [0] contracting = [2] "
      "x [1] : tensor<3x5x7xf32>, tensor<3x7x9xf32> -> tensor<3x5x9xf32>\n"
      " shardc.yield %0 : tensor<3x5x9xf32>\n}");
  expectKernelMatches(
      "(tensor<3x5x7xf32>, tensor<7x9xf32>) -> tensor<3x5x9xf32> {\n^bb0(%a: "
      "tensor<3x5x7xf32>, %b: tensor<7x9xf32>):\n %0 = shardc.dot_general %a, "
      "%b contracting = [2] x [0] : tensor<3x5x7xf32>, tensor<7x9xf32> -> "
      "tensor<3x5x9xf32>\n shardc.yield %0 : tensor<3x5x9xf32>\n}");
  expectKernelMatches(
      "(tensor<3x5x7xf32>, tensor<3x5x9xf32>) -> tensor<7x9xf32> {\n^bb0(%a: "
      "tensor<3x5x7xf32>, %b: tensor<3x5x9xf32>):\n %0 = shardc.dot_general "
      "%a, %b contracting = [0, 1] x [0, 1] : tensor<3x5x7xf32>, "
      "tensor<3x5x9xf32> -> tensor<7x9xf32>\n shardc.yield %0 : "
      "tensor<7x9xf32>\n}");
}

TEST(Kernels, MovesOfData) {
  expectKernelMatches(
      "(tensor<5x11xf32>) -> tensor<11x5xf32> {\n^bb0(%a: tensor<5x11xf32>):\n"
      " %0 = shardc.transpose %a permutation = [1, 0] : tensor<5x11xf32> -> "
      "tensor<11x5xf32>\n shardc.yield %0 : tensor<11x5xf32>\n}");
  expectKernelMatches(
      "(tensor<6x10xf32>) -> tensor<4x15xf32> {\n^bb0(%a: tensor<6x10xf32>):\n"
      " %0 = shardc.exp %a : tensor<6x10xf32>\n %1 = shardc.reshape %0 : "
      "tensor<6x10xf32> -> tensor<4x15xf32>\n %2 = shardc.iota dim = 1 : "
      "tensor<4x15xf32>\n %3 = shardc.add %1, %2 : tensor<4x15xf32>\n "
      "shardc.yield %3 : tensor<4x15xf32>\n}");
  expectKernelMatches("(tensor<9xf32>) -> tensor<9xf32> {\n^bb0(%a: "
                      "tensor<9xf32>):\n shardc.yield %a : tensor<9xf32>\n}");
}

TEST(Kernels, ConstantsThatAreTables) {
  expectKernelMatches("(tensor<4xf32>) -> tensor<4xf32> {\n^bb0(%a: "
                      "tensor<4xf32>):\n %0 = shardc.constant dense<[1.0, 2.5, "
                      "-3.0, 4.0]> : tensor<4xf32>\n %1 = shardc.mul %a, %0 : "
                      "tensor<4xf32>\n shardc.yield %1 : tensor<4xf32>\n}");
}

TEST(Kernels, ShardsOfAGlobalTensor) {
  // 11 rows over x (2): 6 each, the last one padding; 7 columns over y (3).
  expectKernelMatches(
      "(tensor<6x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xi32>) {\n^bb0(%a: "
      "tensor<6x3xf32>):\n %0 = shardc.mask %a dims = [0, 1] fill = 7.0 shard "
      "= <@mesh, [{\"x\"}, {\"y\"}]> global_shape = [11, 7] : "
      "tensor<6x3xf32>\n %1 = shardc.iota dim = 1 shard = <@mesh, [{\"x\"}, "
      "{\"y\"}]> : tensor<6x3xi32>\n shardc.yield %0, %1 : tensor<6x3xf32>, "
      "tensor<6x3xi32>\n}");
  for (int64_t dim : {0, 1})
    for (int64_t size : {12, 13, 31}) {
      int64_t part = (size + 2) / 3;
      std::vector<int64_t> whole = {10, 10}, shard = {10, 10};
      whole[dim] = size;
      shard[dim] = part;
      std::string from = tensor(whole), to = tensor(shard);
      expectKernelMatches("(" + from + ") -> " + to + " {\n^bb0(%a: " + from +
                          "):\n %0 = shardc.slice %a over @mesh[\"y\"] dim = " +
                          std::to_string(dim) + " : " + from + " -> " + to +
                          "\n %1 = shardc.neg %0 : " + to +
                          "\n shardc.yield %1 : " + to + "\n}");
    }
}

TEST(Kernels, ElementTypes) {
  for (const char *type : {"f64", "bf16", "i32", "i64"}) {
    std::string t = tensor({5, 13}, type), r = tensor({5}, type),
                f = tensor({5, 13});
    double tolerance = std::string(type) == "bf16" ? 8e-3 : 1e-6;
    expectKernelMatches("(" + t + ", " + t + ") -> (" + t + ", " + r + ", " +
                            f + ") {\n^bb0(%a: " + t + ", %b: " + t +
                            "):\n %0 = shardc.mul %a, %b : " + t +
                            "\n %1 = shardc.max %0, %a : " + t +
                            "\n %2 = shardc.reduce sum %1 dims = [1] : " + t +
                            " -> " + r + "\n %3 = shardc.convert %1 : " + t +
                            " -> " + f + "\n shardc.yield %1, %2, %3 : " + t +
                            ", " + r + ", " + f + "\n}",
                        tolerance);
  }
  std::string t = tensor({33}, "i32");
  expectKernelMatches("(" + t + ", " + t + ") -> " + t + " {\n^bb0(%a: " + t +
                      ", %b: " + t + "):\n %0 = shardc.div %a, %b : " + t +
                      "\n shardc.yield %0 : " + t + "\n}");
}

TEST(Kernels, ProductsOfOtherElementTypes) {
  for (auto [type, sum] : {std::pair("f64", "f64"), std::pair("bf16", "bf16"),
                           std::pair("bf16", "f32"), std::pair("i32", "i32")}) {
    std::string a = tensor({9, 12}, type), b = tensor({12, 21}, type),
                c = tensor({9, 21}, sum);
    expectKernelMatches(
        "(" + a + ", " + b + ") -> " + c + " {\n^bb0(%a: " + a + ", %b: " + b +
            "):\n %0 = shardc.dot_general %a, %b contracting = "
            "[1] x [0] : " +
            a + ", " + b + " -> " + c + "\n shardc.yield %0 : " + c + "\n}",
        std::string(sum) == "bf16" ? 8e-3 : 1e-6);
  }
}

TEST(Kernels, SumsOfConversionsToBF16) {
  // Sums of what is rounded, of a size that lanes do not divide.
  std::string wide = tensor({5, 13}), half = tensor({5, 13}, "bf16"),
              sums = tensor({13});
  expectKernelMatches(
      "(" + wide + ") -> (" + half + ", " + sums + ") {\n^bb0(%a: " + wide +
          "):\n %0 = shardc.convert %a : " + wide + " -> " + half +
          "\n %1 = shardc.convert %0 : " + half + " -> " + wide +
          "\n %2 = shardc.reduce sum %1 dims = [0] : " + wide + " -> " + sums +
          "\n shardc.yield %0, %2 : " + half + ", " + sums + "\n}",
      8e-3);
}

TEST(Kernels, BF16RoundsToNearestEven) {
  // Numbers with bits that bf16 has no room for, and what they become.
  const double up = 1 + 0x1p-7, most = std::numeric_limits<float>::max();
  const std::pair<double, double> cases[] = {{1 + 0x1p-8, 1},
                                             {1 + 3 * 0x1p-8, 1 + 0x1p-6},
                                             {1 + 0x1p-8 + 0x1p-23, up},
                                             {-1 - 0x1p-8 - 0x1p-23, -up},
                                             {2 - 0x1p-23, 2},
                                             {most, HUGE_VAL},
                                             {-HUGE_VAL, -HUGE_VAL},
                                             {0x1p-149, 0},
                                             {0x1.8p-133, 0x1p-132},
                                             {std::nan(""), std::nan("")}};
  int64_t size = std::size(cases);
  std::string wide = tensor({size}), half = tensor({size}, "bf16");
  for (Mapping mapping : {Mapping::CPU, Mapping::EmulatedGPU}) {
    // By a conversion, and when a result is stored.
    KernelHarness harness(
        "(" + wide + ") -> (" + wide + ", " + half + ") {\n^bb0(%a: " + wide +
            "):\n %0 = shardc.convert %a : " + wide + " -> " + half +
            "\n %1 = shardc.convert %0 : " + half + " -> " + wide +
            "\n %2 = shardc.neg %0 : " + half + "\n %3 = shardc.neg %2 : " +
            half + "\n shardc.yield %1, %3 : " + wide + ", " + half + "\n}",
        mapping);
    ASSERT_TRUE(harness.isReady());
    Tensor operand({size}, 0);
    for (int64_t i = 0; i < size; ++i)
      operand.data[i] = cases[i].first;
    for (const Tensor &result : harness.run({operand}))
      for (int64_t i = 0; i < size; ++i)
        EXPECT_TRUE(result.data[i] == cases[i].second ||
                    (std::isnan(result.data[i]) && std::isnan(cases[i].second)))
            << cases[i].first << " became " << result.data[i];

    // A sum of 256, 1 and 1 loses nothing on its way, nor does a result of f32.
    std::string a = tensor({1, 3}, "bf16"), b = tensor({3, 1}, "bf16");
    for (const char *type : {"f32", "bf16"}) {
      std::string c = tensor({1, 1}, type);
      KernelHarness product("(" + a + ", " + b + ") -> " + c +
                                " {\n^bb0(%a: " + a + ", %b: " + b +
                                "):\n %0 = shardc.dot_general %a, %b "
                                "contracting = [1] x [0] : " +
                                a + ", " + b + " -> " + c +
                                "\n shardc.yield %0 : " + c + "\n}",
                            mapping);
      ASSERT_TRUE(product.isReady());
      Tensor ones({3, 1}, 1), terms({1, 3}, 1);
      terms.data[0] = 256;
      EXPECT_EQ(product.run({terms, ones})[0].data[0], 258);
    }
  }
}

TEST(Kernels, SeveralUpdatesInOneKernel) {
  std::string a = tensor({700, 301}), b = tensor({33});
  expectKernelMatches("(" + a + ", " + a + ", " + b + ", " + b + ") -> (" + a +
                      ", " + b + ") {\n^bb0(%a: " + a + ", %b: " + a +
                      ", %c: " + b + ", %d: " + b +
                      "):\n %0 = shardc.sub %a, %b : " + a +
                      "\n %1 = shardc.sub %c, %d : " + b +
                      "\n shardc.yield %0, %1 : " + a + ", " + b + "\n}");
}

} // namespace
} // namespace shardc
