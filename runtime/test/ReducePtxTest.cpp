//===- ReducePtxTest.cpp - The PTX of collectives, interpreted ------------===//
//
// Every kernel is run, a thread after the other, and gives the bits that
// virtual CPU devices give.
//
//===----------------------------------------------------------------------===//

#include "PtxInterpreter.h"

#include "backends/cuda/ReduceKernels.h"
#include "base/Convert.h"
#include "collectives/Reduce.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace shardc::rt;
using namespace shardc::rt::test;

namespace {

/// Values of every magnitude, with infinities, NaN and other special cases of
/// maxima.
std::vector<char> randomValues(DType dtype, int64_t elements,
                               std::mt19937 &random) {
  std::vector<char> bytes(elements * byteSize(dtype));
  float special[] = {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
                     std::numeric_limits<float>::quiet_NaN(), 1e-40f};
  for (int64_t i = 0; i < elements; ++i) {
    char *at = &bytes[i * byteSize(dtype)];
    float value = random() % 8 == 0 ? special[random() % 5]
                                    : std::ldexp(float(int32_t(random())),
                                                 random() % 60 - 60);
    double wide = value;
    uint16_t half = toBF16(value);
    int64_t integer = int64_t(random()) << 32 | random();
    uint8_t boolean = random() % 2;
    const void *from = dtype == DType::F32    ? static_cast<void *>(&value)
                       : dtype == DType::F64  ? static_cast<void *>(&wide)
                       : dtype == DType::BF16 ? static_cast<void *>(&half)
                       : dtype == DType::Bool ? static_cast<void *>(&boolean)
                                              : static_cast<void *>(&integer);
    std::memcpy(at, from, byteSize(dtype));
  }
  return bytes;
}

/// Whether two elements are the same bits, or both NaN: which NaN is open.
bool isSame(DType dtype, const char *a, const char *b) {
  if (std::memcmp(a, b, byteSize(dtype)) == 0)
    return true;
  uint16_t half[2];
  std::memcpy(&half[0], a, 2);
  std::memcpy(&half[1], b, 2);
  switch (dtype) {
  case DType::F32:
    return std::isnan(*reinterpret_cast<const float *>(a)) &&
           std::isnan(*reinterpret_cast<const float *>(b));
  case DType::F64:
    return std::isnan(*reinterpret_cast<const double *>(a)) &&
           std::isnan(*reinterpret_cast<const double *>(b));
  case DType::BF16:
    return std::isnan(fromBF16(half[0])) && std::isnan(fromBF16(half[1]));
  default:
    return false;
  }
}

struct Shape {
  uint64_t width, rows, inPitch, outPitch;
  uint32_t operands, results;
  bool isInPlace;
  unsigned blocks, threads;
};

} // namespace

TEST(ReducePtxTest, GivesTheBitsOfTheCpu) {
  std::mt19937 random(1);
  const std::string ptx = cuda::reducePtx();
  const Shape shapes[] = {
      {1, 1, 1, 1, 1, 1, false, 1, 32}, {77, 1, 77, 77, 3, 2, false, 2, 8},
      {5, 4, 9, 7, 4, 1, false, 1, 3},  {64, 1, 64, 64, 8, 8, true, 3, 16},
      {3, 7, 3, 5, 2, 3, false, 4, 32}, {9, 1, 9, 9, 13, 1, false, 1, 9},
      {2, 1, 2, 2, 128, 1, false, 1, 2}};
  int kernels = 0;
  for (auto [dtype, name] :
       {std::pair(DType::F32, "f32"), std::pair(DType::BF16, "bf16"),
        std::pair(DType::F64, "f64"), std::pair(DType::I32, "i32"),
        std::pair(DType::I64, "i64"), std::pair(DType::Bool, "bool")})
    for (Reduction reduction : {Reduction::Sum, Reduction::Max}) {
      if (dtype == DType::Bool && reduction == Reduction::Sum)
        continue;
      ++kernels;
      std::string kernel = std::string("shardc_reduce_") +
                           (reduction == Reduction::Sum ? "sum_" : "max_") +
                           name;
      for (const Shape &shape : shapes) {
        int64_t width = byteSize(dtype);
        std::vector<std::vector<char>> in, out;
        for (uint32_t i = 0; i < shape.operands; ++i)
          in.push_back(randomValues(dtype, shape.rows * shape.inPitch, random));
        for (uint32_t i = 0; i < shape.results; ++i)
          out.emplace_back(shape.rows * shape.outPitch * width, char(0x77));
        std::vector<char> expected = out[0];
        std::vector<ReduceOperand> sources;
        for (const std::vector<char> &operand : in)
          sources.push_back({operand.data()});
        for (uint64_t row = 0; row < shape.rows; ++row)
          reduceBlock(dtype, reduction, sources, row * shape.inPitch,
                      shape.width, &expected[row * shape.outPitch * width]);

        cuda::ReduceParameters parameters = {shape.width,
                                             shape.rows,
                                             shape.inPitch,
                                             shape.outPitch,
                                             shape.operands,
                                             shape.results,
                                             {}};
        for (uint32_t i = 0; i < shape.operands; ++i)
          parameters.addresses[i] = reinterpret_cast<uintptr_t>(in[i].data());
        for (uint32_t i = 0; i < shape.results; ++i)
          parameters.addresses[shape.operands + i] =
              reinterpret_cast<uintptr_t>(
                  (shape.isInPlace ? in[i] : out[i]).data());
        void *pointers[] = {&parameters.width,          &parameters.rows,
                            &parameters.inPitch,        &parameters.outPitch,
                            &parameters.operands,       &parameters.results,
                            parameters.addresses.data()};
        PtxInterpreter interpreter(ptx, kernel);
        ASSERT_TRUE(interpreter.run(pointers, shape.blocks, shape.threads))
            << kernel << ": " << interpreter.error;
        for (uint32_t i = 0; i < shape.results; ++i) {
          const std::vector<char> &actual = shape.isInPlace ? in[i] : out[i];
          // With the bytes between the rows.
          for (size_t at = 0; at < expected.size(); at += width)
            ASSERT_TRUE(isSame(dtype, &actual[at], &expected[at]))
                << kernel << " result " << i << " element " << at / width;
        }
      }
    }
  EXPECT_EQ(kernels, 11);
}

TEST(ReducePtxTest, TheInterpreterSaysWhatItDoesNotKnow) {
  PtxInterpreter interpreter(".visible .entry f(\n .param .u64 x)\n{\n"
                             "  sqrt.rn.f32 %a, %b;\n  ret;\n}\n",
                             "f");
  uint64_t x = 0;
  void *pointers[] = {&x};
  EXPECT_FALSE(interpreter.run(pointers, 1, 1));
  EXPECT_EQ(interpreter.error, "unknown instruction sqrt rn f32");
}
