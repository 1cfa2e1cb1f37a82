//===- GemmKernelsTest.cpp - Generated GEMMs, interpreted too -------------===//
//
// Every order of operands, over shapes with single, odd and vector-sized
// dimensions, with batches and of all element types.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include <gtest/gtest.h>

namespace shardc {
namespace {

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

TEST(Kernels, GemmsOfEveryShape) {
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
      // Fewer columns than lanes; blocks of rows, the last of which is short.
      expectDot(1000, 3, 40, transposeLhs, transposeRhs);
      expectDot(96, 7, 200, transposeLhs, transposeRhs);
      // Squares to transpose, and the rest beside them.
      for (int64_t k : {8, 16, 17, 48})
        expectDot(10, 27, k, transposeLhs, transposeRhs);
    }
}

/// Lanes over pairs of columns: rows that make no whole tile, terms that make
/// no whole vector, and values of an element, its row, its column and its
/// place.
TEST(Kernels, GemmsOfFewColumns) {
  auto expectEpilogue = [](int64_t m, int64_t n, int64_t k, bool transposeRhs) {
    std::string a = tensor({m, k});
    std::string b = transposeRhs ? tensor({n, k}) : tensor({k, n});
    std::string c = tensor({m, n}), row = tensor({n}), column = tensor({m});
    std::string p = tensor({m, n}, "i1"), i = tensor({m, n}, "i32");
    auto of = [&](const std::string &op, const std::string &type) {
      return " = shardc." + op + " : " + type;
    };
    expectKernelMatches(
        "(" + a + ", " + b + ", " + row + ", " + column + ", " + c + ") -> (" +
        c + ", " + c + ") {\n^bb0(%a: " + a + ", %b: " + b + ", %row: " + row +
        ", %column: " + column + ", %c: " + c +
        "):\n %0 = shardc.dot_general %a, %b contracting = [1] x [" +
        (transposeRhs ? "1" : "0") + "] : " + a + ", " + b + " -> " + c +
        "\n %1" + of("broadcast %row dims = [1]", row) + " -> " + c + "\n %2" +
        of("broadcast %column dims = [0]", column) + " -> " + c + "\n %3" +
        of("add %0, %1", c) + "\n %4" + of("mul %3, %2", c) + "\n %5" +
        of("compare gt %c, %4", c) + " -> " + p + "\n %6" +
        of("iota dim = 1", i) + "\n %7" + of("convert %6", i) + " -> " + c +
        "\n %8" + of("iota dim = 0 shard = <@mesh, [{\"x\"}, {}]>", i) +
        "\n %9" + of("convert %8", i) + " -> " + c + "\n %10" +
        of("add %7, %9", c) + "\n %11" +
        of("select %5, %4, %10", p + ", " + c) + "\n %12" +
        of("mask %3 dims = [0] fill = 7.0 shard = <@mesh, [{\"x\"}, {}]> "
           "global_shape = [" +
               std::to_string(2 * m - 1) + ", " + std::to_string(n) + "]",
           c) +
        "\n shardc.yield %11, %12 : " + c + ", " + c + "\n}");
  };
  for (int64_t n = 1; n < 8; ++n) {
    expectEpilogue(250, n, 10, n % 2);
    expectDot(203, n, 33, n % 2, n % 3);
  }
  for (int64_t n = 2; n <= 6; ++n)
    expectEpilogue(1021, n, 19, n % 2 == 0);
  for (int64_t m : {8, 31, 77})
    for (int64_t k : {3, 4})
      expectDot(m, m % 3 + 2, k, false, k % 2);
}

/// A bool takes a byte, in packed panels and shared memory, too. Few terms: a
/// third of the sums is false.
TEST(Kernels, GemmsOfBools) {
  constexpr int64_t k = 5;
  for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 18})
    for (bool transposeRhs : {false, true}) {
      std::string a = tensor({64, k}, "i1"), c = tensor({64, n}, "i1");
      std::string b =
          transposeRhs ? tensor({n, k}, "i1") : tensor({k, n}, "i1");
      expectKernelMatches(
          "(" + a + ", " + b + ") -> " + c + " {\n^bb0(%a: " + a + ", %b: " +
          b + "):\n %0 = shardc.dot_general %a, %b contracting = [1] x [" +
          (transposeRhs ? "1" : "0") + "] : " + a + ", " + b + " -> " + c +
          "\n shardc.yield %0 : " + c + "\n}");
    }
}

/// GPUs cut contractions into slices that are not equally long, and have other
/// nests beside a GEMM: a sum of so many rows that it would have a larger block
/// alone.
TEST(Kernels, GemmsBesideLongSums) {
  for (int64_t k : {130, 263}) {
    expectDot(20, 36, k, false, true);
    expectDot(20, 36, k, true, false);
    expectDot(3, 1, k, true, true);
  }
  for (int64_t k : {263, 1030}) {
    std::string a = tensor({k, 20}), b = tensor({k, 12}), c = tensor({20, 12});
    std::string sum = tensor({12});
    expectKernelMatches(
        "(" + a + ", " + b + ") -> (" + c + ", " + sum + ") {\n^bb0(%a: " + a +
        ", %b: " + b +
        "):\n %0 = shardc.dot_general %a, %b contracting = [0] x [0] : " + a +
        ", " + b + " -> " + c +
        "\n %1 = shardc.reduce sum %b dims = [0] : " + b + " -> " + sum +
        "\n shardc.yield %0, %1 : " + c + ", " + sum + "\n}");
  }
}

TEST(Kernels, BatchedAndCollapsedGemms) {
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

TEST(Kernels, GemmsOfOtherElementTypes) {
  for (auto [type, sum] : {std::pair("f64", "f64"), std::pair("bf16", "bf16"),
                           std::pair("bf16", "f32"), std::pair("i32", "i32")}) {
    auto check = [&, type = type, sum = sum](
                     std::vector<int64_t> lhs, std::vector<int64_t> rhs,
                     std::vector<int64_t> result, const char *contracting) {
      std::string a = tensor(lhs, type), b = tensor(rhs, type),
                  c = tensor(result, sum);
      expectKernelMatches(
          "(" + a + ", " + b + ") -> " + c + " {\n^bb0(%a: " + a + ", %b: " +
              b + "):\n %0 = shardc.dot_general %a, %b contracting = " +
              contracting + " : " + a + ", " + b + " -> " + c +
              "\n shardc.yield %0 : " + c + "\n}",
          std::string(sum) == "bf16" ? 8e-3 : 1e-6);
    };
    check({9, 12}, {12, 21}, {9, 21}, "[1] x [0]");
    // Packed by squares; fewer columns than lanes, along rows.
    check({9, 35}, {21, 35}, {9, 21}, "[1] x [1]");
    check({33, 20}, {33, 5}, {20, 5}, "[0] x [0]");
    // Pairs of columns.
    check({33, 20}, {20, 3}, {33, 3}, "[1] x [0]");
    check({33, 20}, {2, 20}, {33, 2}, "[1] x [1]");
  }
}

/// The second of three rows of tokens is another sequence's: rows of two
/// dimensions, or of a batch of matrices, and few columns.
TEST(Kernels, GemmsOfCollapsedRowsAndBatchesWithPairs) {
  expectKernelMatches(
      "(tensor<16x6x8xf32>, tensor<8x4xf32>) -> tensor<16x6x4xf32> "
      "{\n^bb0(%a: tensor<16x6x8xf32>, %b: tensor<8x4xf32>):\n"
      " %0 = shardc.dot_general %a, %b contracting = [2] x [0] : "
      "tensor<16x6x8xf32>, tensor<8x4xf32> -> tensor<16x6x4xf32>\n"
      " shardc.yield %0 : tensor<16x6x4xf32>\n}");
  expectKernelMatches(
      "(tensor<3x21x7xf32>, tensor<3x7x4xf32>) -> tensor<3x21x4xf32> "
      "{\n^bb0(%a: tensor<3x21x7xf32>, %b: tensor<3x7x4xf32>):\n"
      " %0 = shardc.dot_general %a, %b batching = [0] x [0] contracting = [2] "
      "x [1] : tensor<3x21x7xf32>, tensor<3x7x4xf32> -> tensor<3x21x4xf32>\n"
      " shardc.yield %0 : tensor<3x21x4xf32>\n}");
}

/// Rows of two dimensions do not make lanes.
TEST(Kernels, GemmsOfCollapsedRowsWithFewColumns) {
  expectKernelMatches(
      "(tensor<64x6x8xf32>, tensor<64x4xf32>) -> tensor<6x8x4xf32> "
      "{\n^bb0(%a: tensor<64x6x8xf32>, %b: tensor<64x4xf32>):\n"
      " %0 = shardc.dot_general %a, %b contracting = [0] x [0] : "
      "tensor<64x6x8xf32>, tensor<64x4xf32> -> tensor<6x8x4xf32>\n"
      " shardc.yield %0 : tensor<6x8x4xf32>\n}");
}

} // namespace
} // namespace shardc
