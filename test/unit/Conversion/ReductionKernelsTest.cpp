//===- ReductionKernelsTest.cpp - Generated reductions, interpreted too ---===//
//
// Over rows, columns and all there is, where a thread keeps what it has read
// and where it reads again.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <gtest/gtest.h>

namespace shardc {
namespace {

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

TEST(Kernels, SumsOfConversionsToBF16) {
  // Sums of rounded values, of a size that lanes do not divide.
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

} // namespace
} // namespace shardc
