//===- KernelsTest.cpp - Generated kernels against interpretation ---------===//
//
// Elementwise and moving loop nests, over shapes with single, odd and
// vector-sized dimensions and with several iterations, and their element types.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace shardc {
namespace {

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

TEST(Kernels, SlicesPaddingConcatenations) {
  for (const char *type : {"f32", "bf16", "i64", "i1"})
    for (auto [m, n] : {std::pair(1, 1), std::pair(1, 7), std::pair(5, 1),
                        std::pair(7, 10), std::pair(13, 33)}) {
      std::string from = tensor({m, n}, type),
                  part = tensor({(m + 1) / 2, (n + 2) / 3}, type),
                  rows = tensor({(m + 1) / 2, n}, type),
                  padded = tensor({2 * m, n + 3}, type),
                  joined = tensor({m, 2 * n + 3}, type),
                  last = tensor({m, 3}, type);
      expectKernelMatches("(" + from + ") -> " + rows + " {\n^bb0(%a: " + from +
                          "):\n %0 = shardc.extract_slice %a starts = [" +
                          std::to_string(m / 2) +
                          ", 0] strides = [1, 1] : " + from + " -> " + rows +
                          "\n shardc.yield %0 : " + rows + "\n}");
      expectKernelMatches("(" + from + ") -> " + part + " {\n^bb0(%a: " + from +
                          "):\n %0 = shardc.extract_slice %a starts = [0, 0] "
                          "strides = [2, 3] : " +
                          from + " -> " + part +
                          "\n shardc.yield %0 : " + part + "\n}");
      expectKernelMatches(
          "(" + from + ") -> " + padded + " {\n^bb0(%a: " + from +
          "):\n %0 = shardc.pad %a low = [1, 2] interior = "
          "[1, 0] fill = 1.0 : " +
          from + " -> " + padded + "\n shardc.yield %0 : " + padded + "\n}");
      expectKernelMatches("(" + from + ", " + last + ") -> " + joined +
                          " {\n^bb0(%a: " + from + ", %b: " + last +
                          "):\n %0 = shardc.concatenate %a, %b, %a dim = 1 : "
                          "(" +
                          from + ", " + last + ", " + from + ") -> " + joined +
                          "\n shardc.yield %0 : " + joined + "\n}");
    }
}

TEST(Kernels, PermutedRows) {
  // Rings, an exchange of halves, and no two neighbours together.
  std::string rows = tensor({5, 33}), columns = tensor({7, 6}),
              row = tensor({1, 9}, "i64");
  expectKernelMatches("(" + rows + ") -> " + rows + " {\n^bb0(%a: " + rows +
                      "):\n %0 = shardc.permute_rows %a dim = 0 sources = [4, "
                      "0, 1, 2, 3] : " +
                      rows + "\n %1 = shardc.add %0, %a : " + rows +
                      "\n shardc.yield %1 : " + rows + "\n}");
  for (const char *sources :
       {"[3, 4, 5, 0, 1, 2]", "[5, 4, 3, 2, 1, 0]", "[1, 2, 3, 4, 5, 0]"})
    expectKernelMatches(
        "(" + columns + ") -> " + columns + " {\n^bb0(%a: " + columns +
        "):\n %0 = shardc.exp %a : " + columns +
        "\n %1 = shardc.permute_rows %0 dim = 1 sources = " + sources + " : " +
        columns + "\n shardc.yield %1 : " + columns + "\n}");
  expectKernelMatches("(" + row + ") -> " + row + " {\n^bb0(%a: " + row +
                      "):\n %0 = shardc.permute_rows %a dim = 0 sources = [0]"
                      " : " +
                      row + "\n shardc.yield %0 : " + row + "\n}");
}

TEST(Kernels, Bits) {
  // A hash: of what a kernel is given, and of positions.
  for (auto [m, n] : {std::pair(1, 1), std::pair(1, 7), std::pair(13, 33),
                      std::pair(40, 64)}) {
    std::string i = tensor({m, n}, "i32"), f = tensor({m, n});
    auto binary = [&](const std::string &result, const std::string &op,
                      const std::string &lhs, const std::string &rhs) {
      return " %" + result + " = shardc." + op + " %" + lhs + ", %" + rhs +
             " : " + i + "\n";
    };
    auto splat = [&](const std::string &name, const std::string &value) {
      return " %" + name + " = shardc.constant dense<" + value + "> : " + i +
             "\n";
    };
    expectKernelMatches(
        "(" + i + ", " + i + ") -> (" + i + ", " + i + ", " + f +
        ") {\n^bb0(%a: " + i + ", %b: " + i +
        "):\n %p = shardc.iota dim = 1 : " + i + "\n" +
        splat("c", "-1640531535") + splat("s13", "13") + splat("s19", "19") +
        splat("nine", "9") + splat("one", "1065353216") +
        binary("h", "mul", "p", "c") + binary("l", "shift_left", "h", "s13") +
        binary("r", "shift_right_logical", "h", "s19") +
        binary("rotated", "or", "l", "r") + binary("x", "xor", "rotated", "a") +
        binary("any", "shift_left", "x", "b") + binary("y", "add", "x", "any") +
        binary("t", "shift_right_arithmetic", "y", "b") +
        binary("u", "shift_right_logical", "y", "nine") +
        binary("w", "or", "u", "one") + binary("z", "and", "t", "y") +
        " %f = shardc.bitcast %w : " + i + " -> " + f +
        "\n %back = shardc.bitcast %f : " + f + " -> " + i +
        "\n shardc.yield %z, %back, %f : " + i + ", " + i + ", " + f + "\n}");
  }
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
  for (const char *type : {"f64", "bf16", "i32", "i64"})
    // Rows longer than a vector, and such whose lanes run over rows.
    for (auto [m, n] : {std::pair(5, 13), std::pair(20, 3)}) {
      std::string t = tensor({m, n}, type), r = tensor({m}, type),
                  f = tensor({m, n}), p = tensor({m, n}, "i1");
      double tolerance = std::string(type) == "bf16" ? 8e-3 : 1e-6;
      expectKernelMatches(
          "(" + t + ", " + t + ") -> (" + t + ", " + r + ", " + f + ", " + p +
              ") {\n^bb0(%a: " + t + ", %b: " + t +
              "):\n %0 = shardc.mul %a, %b : " + t +
              "\n %1 = shardc.max %0, %a : " + t +
              "\n %2 = shardc.reduce sum %1 dims = [1] : " + t + " -> " + r +
              "\n %3 = shardc.convert %1 : " + t + " -> " + f +
              "\n %4 = shardc.compare gt %0, %a : " + t + " -> " + p +
              "\n shardc.yield %1, %2, %3, %4 : " + t + ", " + r + ", " + f +
              ", " + p + "\n}",
          tolerance);
    }
  std::string t = tensor({33}, "i32");
  expectKernelMatches("(" + t + ", " + t + ") -> " + t + " {\n^bb0(%a: " + t +
                      ", %b: " + t + "):\n %0 = shardc.div %a, %b : " + t +
                      "\n shardc.yield %0 : " + t + "\n}");
}

TEST(Kernels, BF16RoundsToNearestEven) {
  // Numbers with bits that bf16 has no room for, and their roundings.
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
      KernelHarness gemm("(" + a + ", " + b + ") -> " + c +
                             " {\n^bb0(%a: " + a + ", %b: " + b +
                             "):\n %0 = shardc.dot_general %a, %b "
                             "contracting = [1] x [0] : " +
                             a + ", " + b + " -> " + c +
                             "\n shardc.yield %0 : " + c + "\n}",
                         mapping);
      ASSERT_TRUE(gemm.isReady());
      Tensor ones({3, 1}, 1), terms({1, 3}, 1);
      terms.data[0] = 256;
      EXPECT_EQ(gemm.run({terms, ones})[0].data[0], 258);
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
