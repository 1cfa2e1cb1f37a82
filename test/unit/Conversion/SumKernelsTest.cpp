//===- SumKernelsTest.cpp - GEMMs added up over devices in registers ------===//
//
// The function that adds up the GEMMs of devices has the bits of a function for
// each device and the tree of additions behind them.
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "shardc/Conversion/KernelEmitter/KernelDialects.h"
#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace shardc {
namespace {

struct Gemm {
  int64_t devices, m, n, k;
  bool transposeRhs = false;
  const char *type = "f32";
};

std::string getSource(const Gemm &gemm) {
  std::string a = tensor({gemm.m, gemm.k}, gemm.type);
  std::string b = gemm.transposeRhs ? tensor({gemm.n, gemm.k}, gemm.type)
                                    : tensor({gemm.k, gemm.n}, gemm.type);
  std::string c = tensor({gemm.m, gemm.n});
  return "module {\n  shardc.mesh @mesh <[\"data\" = 2, \"model\" = " +
         std::to_string(gemm.devices) + "]>\n  func.func @f(%a: " + a +
         ", %b: " + b + ") -> " + c + " {\n    %0 = shardc.kernel(%a, %b) : (" +
         a + ", " + b + ") -> " + c + " {\n    ^bb0(%x: " + a + ", %y: " + b +
         "):\n      %1 = shardc.dot_general %x, %y contracting = [1] x [" +
         (gemm.transposeRhs ? "1" : "0") + "] : " + a + ", " + b + " -> " + c +
         "\n      shardc.yield %1 : " + c +
         "\n    }\n    %2 = shardc.all_reduce sum %0 over @mesh[\"model\"] : "
         "(" +
         c + ") -> " + c + "\n    return %2 : " + c + "\n  }\n}\n";
}

/// The sum of elements [first, first + count) of a list of results, in the
/// order of the tree (runtime/src/base/ReductionTree.h).
float addUp(const std::vector<std::vector<float>> &terms, size_t element,
            size_t first, size_t count) {
  if (count == 1)
    return terms[first][element];
  size_t left = 1;
  while (2 * left < count)
    left *= 2;
  return addUp(terms, element, first, left) +
         addUp(terms, element, first + left, count - left);
}

void expectSum(const Gemm &gemm, Mapping mapping) {
  SCOPED_TRACE(getSource(gemm));
  MLIRContext context;
  DialectRegistry registry;
  insertKernelDialects(registry);
  registry.insert<ShardcDialect, func::FuncDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(getSource(gemm), &context);
  ASSERT_TRUE(module && succeeded(lowerKernels(*module)));
  KernelOp kernel;
  module->walk([&](KernelOp op) { kernel = op; });
  auto symbol = kernel->getAttrOfType<StringAttr>(symbolAttrName);
  auto sumSymbol = kernel->getAttrOfType<StringAttr>(sumSymbolAttrName);
  ASSERT_TRUE(sumSymbol);
  int64_t extent = kernel->getAttrOfType<IntegerAttr>(extentAttrName).getInt();
  NativeKernels native;
  native.load(*module, mapping);
  NativeKernels::Function one = native.find(symbol.getValue()),
                          sum = native.find(sumSymbol.getValue());
  ASSERT_TRUE(one && sum);

  const bool isHalf = StringRef(gemm.type) == "bf16";
  std::mt19937 random(7);
  auto makeOperand = [&](int64_t elements) {
    std::vector<char> bytes(elements * (isHalf ? 2 : 4));
    for (int64_t i = 0; i < elements; ++i) {
      float value = std::uniform_real_distribution<float>(-2, 2)(random);
      // The upper half of an f32 is a bf16.
      const char *from = reinterpret_cast<const char *>(&value);
      std::memcpy(&bytes[i * (isHalf ? 2 : 4)], from + (isHalf ? 2 : 0),
                  isHalf ? 2 : 4);
    }
    return bytes;
  };
  std::vector<std::vector<char>> operands;
  std::vector<std::vector<float>> terms;
  std::vector<void *> table;
  int64_t coordinates[4] = {};
  for (int64_t device = 0; device < gemm.devices; ++device) {
    std::vector<char> &a = operands.emplace_back(makeOperand(gemm.m * gemm.k));
    void *ofA = a.data();
    std::vector<char> &b = operands.emplace_back(makeOperand(gemm.k * gemm.n));
    std::vector<float> &c = terms.emplace_back(gemm.m * gemm.n);
    void *buffers[] = {ofA, b.data(), c.data()};
    one(buffers, coordinates, 0, extent);
    table.insert(table.end(), buffers, buffers + 2);
  }
  for (int64_t piece : {extent, int64_t(1), int64_t(3)}) {
    std::vector<float> result(gemm.m * gemm.n, NAN);
    table.resize(2 * gemm.devices);
    table.push_back(result.data());
    for (int64_t begin = 0; begin < extent; begin += piece)
      sum(table.data(), coordinates, begin, std::min(begin + piece, extent));
    for (size_t i = 0; i < result.size(); ++i) {
      float expected = addUp(terms, i, 0, gemm.devices);
      ASSERT_EQ(std::memcmp(&expected, &result[i], sizeof(float)), 0)
          << "element " << i << ": " << result[i] << ", expected " << expected
          << ", in pieces of " << piece;
    }
  }
}

TEST(SumKernels, HaveTheBitsOfTheTree) {
  std::vector<Gemm> gemms;
  for (int64_t devices : {2, 3, 4, 5, 6, 7, 8, 16})
    gemms.push_back({devices, 1024, 16, 4});
  for (int64_t devices : {3, 8})
    for (bool transposeRhs : {false, true}) {
      // Odd rows and columns, lanes over pairs of columns and over rows, sums
      // along the lanes, chains of few rows, and copied panels.
      for (int64_t n : {1, 2, 5, 7, 8, 33, 48})
        gemms.push_back({devices, 1001, n, 9, transposeRhs});
      for (int64_t m : {1, 2, 7, 37})
        gemms.push_back({devices, m, 20, 35, transposeRhs});
      gemms.push_back({devices, 130, 64, 64, transposeRhs});
      gemms.push_back({devices, 200, 24, 16, transposeRhs, "bf16"});
    }
  for (const Gemm &gemm : gemms) {
    expectSum(gemm, Mapping::CPU);
    if (hasWideVectors())
      expectSum(gemm, Mapping::WideCPU);
  }
}

} // namespace
} // namespace shardc
