//===- CollectivePtxTest.cpp - The PTX of collectives, interpreted --------===//
//
// Every kernel is run, a thread after the other, and gives the bits that
// virtual CPU devices give.
//
//===----------------------------------------------------------------------===//

#include "PtxInterpreter.h"

#include "backends/cuda/BoxTable.h"
#include "backends/cuda/CollectivePtx.h"
#include "base/Convert.h"
#include "collectives/Reduce.h"

#include <algorithm>
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

/// A block of rows of `width` elements, and how a launch divides it.
struct Shape {
  uint64_t width, rows, inPitch, outPitch;
  uint32_t operands, results;
  bool isInPlace = false;
  uint64_t offset = 0; ///< Elements from an aligned address to the first.
  uint64_t threads = 8, maxBlocks = 4;
};

cuda::CUdeviceptr addressOf(const void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// Memory of a tensor that starts at a multiple of a vector, plus `offset`.
struct Tensor {
  Tensor(const std::vector<char> &values, uint64_t offset)
      : bytes(values.size() + offset + cuda::vectorBytes) {
    start = (cuda::vectorBytes - addressOf(bytes.data()) % cuda::vectorBytes) %
                cuda::vectorBytes +
            offset;
    std::memcpy(data(), values.data(), values.size());
  }
  char *data() { return bytes.data() + start; }

  std::vector<char> bytes;
  uint64_t start;
};

/// Runs kernel `name` on boxes of equally many operands and results; the error.
std::string runKernel(const std::string &name,
                      absl::Span<const cuda::BoxReduction> boxes,
                      uint64_t elementBytes, uint64_t threads,
                      uint64_t maxBlocks) {
  static const std::string ptx = cuda::collectivePtx();
  cuda::BoxTable table =
      cuda::makeBoxTable(boxes, elementBytes, threads, maxBlocks);
  cuda::CUdeviceptr entries = addressOf(table.entries.data()),
                    blockEntries = addressOf(table.entryOfBlock.data());
  uint32_t operands = boxes[0].operands.size(),
           results = boxes[0].results.size();
  void *pointers[] = {&entries, &blockEntries, &operands, &results};
  PtxInterpreter interpreter(ptx, name);
  if (!interpreter.run(pointers, table.entryOfBlock.size(), threads))
    return interpreter.error;
  return "";
}

} // namespace

TEST(CollectivePtxTest, ReducesToTheBitsOfTheCpu) {
  std::mt19937 random(1);
  std::vector<Shape> shapes = {{1, 1, 1, 1, 1, 1},
                               {77, 1, 77, 77, 3, 2},
                               {5, 4, 9, 7, 4, 1},
                               {64, 1, 64, 64, 8, 8, true},
                               {67, 1, 67, 67, 8, 8, true, 1},
                               {3, 7, 3, 5, 2, 3},
                               {9, 1, 9, 9, 13, 1},
                               {2, 1, 2, 2, 128, 1},
                               {33, 1, 33, 33, 256, 2},
                               // Rows of vectors, with and without a rest.
                               {32, 5, 64, 48, 3, 2},
                               {35, 5, 64, 48, 9, 1},
                               {300, 3, 304, 320, 2, 1, false, 0, 4, 2}};
  for (uint32_t operands = 1; operands <= 17; ++operands)
    shapes.push_back({37, 1, 37, 37, operands, 1});
  int kernels = 0;
  for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I32,
                      DType::I64, DType::Bool})
    for (Reduction reduction : {Reduction::Sum, Reduction::Max}) {
      std::string kernel = cuda::reduceKernel(dtype, reduction);
      if (kernel.empty())
        continue;
      ++kernels;
      for (const Shape &shape : shapes) {
        const uint64_t width = byteSize(dtype);
        cuda::BoxReduction box{
            shape.width * width,    shape.rows, shape.inPitch * width,
            shape.outPitch * width, {},         {}};
        std::vector<Tensor> in, out;
        for (uint32_t i = 0; i < shape.operands; ++i)
          in.emplace_back(
              randomValues(dtype, shape.rows * shape.inPitch, random),
              shape.offset * width);
        std::vector<char> expected(shape.rows * shape.outPitch * width, 0x77);
        for (uint32_t i = 0; i < shape.results; ++i)
          out.emplace_back(expected, shape.offset * width);
        std::vector<ReduceOperand> sources;
        for (Tensor &operand : in) {
          sources.push_back({operand.data()});
          box.operands.push_back(addressOf(operand.data()));
        }
        for (uint32_t i = 0; i < shape.results; ++i)
          box.results.push_back(
              addressOf((shape.isInPlace ? in[i] : out[i]).data()));
        for (uint64_t row = 0; row < shape.rows; ++row)
          reduceBlock(dtype, reduction, sources, row * shape.inPitch,
                      shape.width, &expected[row * shape.outPitch * width]);
        ASSERT_EQ(
            runKernel(kernel, {box}, width, shape.threads, shape.maxBlocks), "")
            << kernel;
        for (uint32_t i = 0; i < shape.results; ++i) {
          char *actual = (shape.isInPlace ? in[i] : out[i]).data();
          // With the bytes between the rows.
          for (size_t at = 0; at < expected.size(); at += width)
            ASSERT_TRUE(isSame(dtype, &actual[at], &expected[at]))
                << kernel << " of " << shape.operands << " result " << i
                << " element " << at / width;
        }
      }
    }
  EXPECT_EQ(kernels, 11);
}

TEST(CollectivePtxTest, CopiesBoxesOfAllAlignments) {
  std::mt19937 random(2);
  auto upTo = [&](uint64_t n) { return random() % (n + 1); };
  for (int launch = 0; launch < 100; ++launch) {
    const uint64_t results = 1 + upTo(3), unit = uint64_t(1) << upTo(4);
    std::vector<cuda::BoxReduction> boxes(1 + upTo(4));
    std::vector<Tensor> tensors;
    std::vector<std::vector<char>> expected; // By tensor.
    for (cuda::BoxReduction &box : boxes) {
      // Multiples of the unit, and now and then a byte more.
      auto some = [&](uint64_t n) {
        return unit * upTo(n) + (upTo(9) == 0 ? 1 : 0);
      };
      box = {some(20), upTo(5), 0, 0, {}, {}};
      box.inPitch = box.width + some(2);
      box.outPitch = box.width + (upTo(2) == 0 ? 0 : some(2));
      std::vector<char> source(box.height * box.inPitch),
          result(box.height * box.outPitch, 0x77);
      for (char &byte : source)
        byte = static_cast<char>(random());
      tensors.emplace_back(source, some(2));
      expected.push_back(source);
      box.operands = {addressOf(tensors.back().data())};
      for (uint64_t row = 0; row < box.height; ++row)
        std::copy_n(source.begin() + row * box.inPitch, box.width,
                    result.begin() + row * box.outPitch);
      for (uint64_t i = 0; i < results; ++i) {
        tensors.emplace_back(std::vector<char>(result.size(), 0x77), some(2));
        expected.push_back(result);
        box.results.push_back(addressOf(tensors.back().data()));
      }
    }
    ASSERT_EQ(runKernel(cuda::copyKernel, boxes, 0, 1 + upTo(40), 1 + upTo(20)),
              "");
    for (size_t i = 0; i < tensors.size(); ++i)
      ASSERT_EQ(std::vector<char>(tensors[i].data(),
                                  tensors[i].data() + expected[i].size()),
                expected[i])
          << "launch " << launch << " tensor " << i;
  }
}

TEST(CollectivePtxTest, BoxesHaveTheLargestUnits) {
  auto shiftsOf = [](cuda::BoxReduction box, uint64_t elementBytes) {
    cuda::BoxTable table = cuda::makeBoxTable({box}, elementBytes, 256, 4096);
    const size_t entryBytes =
        sizeof(cuda::BoxEntry) + 8 * (box.operands.size() + box.results.size());
    std::vector<std::pair<uint64_t, uint32_t>> units;
    for (size_t at = 0; at < table.entries.size(); at += entryBytes) {
      cuda::BoxEntry entry;
      std::memcpy(&entry, &table.entries[at], sizeof(entry));
      units.push_back({entry.width, entry.unitShift});
    }
    return units;
  };
  using Units = std::vector<std::pair<uint64_t, uint32_t>>;
  // Contiguous rows are one.
  EXPECT_EQ(shiftsOf({64, 10, 64, 64, {256}, {512}}, 0), (Units{{40, 4}}));
  EXPECT_EQ(shiftsOf({40, 10, 80, 40, {256}, {512}}, 0), (Units{{5, 3}}));
  EXPECT_EQ(shiftsOf({70, 1, 70, 70, {256}, {512}}, 0),
            (Units{{4, 4}, {3, 1}}));
  EXPECT_EQ(shiftsOf({70, 1, 70, 70, {256}, {516}}, 0),
            (Units{{17, 2}, {1, 1}}));
  EXPECT_EQ(shiftsOf({70, 1, 70, 70, {255}, {512}}, 0), (Units{{70, 0}}));
  // Those of reductions are elements or vectors.
  EXPECT_EQ(shiftsOf({72, 1, 72, 72, {256, 512}, {1024}}, 4),
            (Units{{4, 4}, {2, 2}}));
  EXPECT_EQ(shiftsOf({72, 1, 72, 72, {256, 520}, {1024}}, 4), (Units{{18, 2}}));
  EXPECT_EQ(shiftsOf({0, 1, 0, 0, {256}, {1024}}, 4), Units{});
  EXPECT_EQ(shiftsOf({16, 0, 32, 16, {256}, {1024}}, 4), Units{});
}

TEST(CollectivePtxTest, BlocksHaveEqualParts) {
  // A small and a large one: 1 and 1000 units a thread of a block.
  const uint64_t large = 256 * 1000 * 16;
  cuda::BoxTable table =
      cuda::makeBoxTable({{4096, 1, 4096, 4096, {1 << 20}, {2 << 20}},
                          {large, 1, large, large, {1 << 20}, {2 << 20}}},
                         0, 256, 100);
  EXPECT_EQ(std::count(table.entryOfBlock.begin(), table.entryOfBlock.end(), 0),
            1);
  EXPECT_EQ(std::count(table.entryOfBlock.begin(), table.entryOfBlock.end(), 1),
            91);
}

TEST(CollectivePtxTest, TheInterpreterSaysWhatItDoesNotKnow) {
  PtxInterpreter interpreter(".visible .entry f(\n .param .u64 x)\n{\n"
                             "  sqrt.rn.f32 %a, %b;\n  ret;\n}\n",
                             "f");
  uint64_t x = 0;
  void *pointers[] = {&x};
  EXPECT_FALSE(interpreter.run(pointers, 1, 1));
  EXPECT_EQ(interpreter.error,
            "unknown or not aligned: instruction sqrt rn f32");
}
