//===- GroupKernelsTest.cpp - GEMMs of all devices of a group -------------===//
//
// The function that adds up the GEMMs of devices has the bits of a function for
// each device and the tree of additions behind them, one that computes them
// side by side those of a function for each.
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

/// The functions of the one kernel of a module: of one device, and of a group.
struct Functions {
  Functions(const std::string &source, Mapping mapping) {
    DialectRegistry registry;
    insertKernelDialects(registry);
    registry.insert<ShardcDialect, func::FuncDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(source, &context);
    if (!module || failed(lowerKernels(*module))) {
      ADD_FAILURE() << "cannot lower";
      return;
    }
    KernelOp kernel;
    module->walk([&](KernelOp op) { kernel = op; });
    auto symbol = kernel->getAttrOfType<StringAttr>(symbolAttrName),
         groupSymbol = kernel->getAttrOfType<StringAttr>(groupSymbolAttrName);
    extent = kernel->getAttrOfType<IntegerAttr>(extentAttrName).getInt();
    if (!groupSymbol)
      return;
    native.load(*module, mapping);
    one = native.find(symbol.getValue());
    group = native.find(groupSymbol.getValue());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  NativeKernels native;
  NativeKernels::Function one = nullptr, group = nullptr;
  int64_t extent = 0;
};

void expectSum(const Gemm &gemm, Mapping mapping) {
  SCOPED_TRACE(getSource(gemm));
  Functions functions(getSource(gemm), mapping);
  ASSERT_TRUE(functions.one && functions.group);
  const int64_t extent = functions.extent;

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
    functions.one(buffers, coordinates, 0, extent);
    table.insert(table.end(), buffers, buffers + 2);
  }
  for (int64_t piece : {extent, int64_t(1), int64_t(3)}) {
    std::vector<float> result(gemm.m * gemm.n, NAN);
    table.resize(2 * gemm.devices);
    table.push_back(result.data());
    for (int64_t begin = 0; begin < extent; begin += piece)
      functions.group(table.data(), coordinates, begin,
                      std::min(begin + piece, extent));
    for (size_t i = 0; i < result.size(); ++i) {
      float expected = addUp(terms, i, 0, gemm.devices);
      ASSERT_EQ(std::memcmp(&expected, &result[i], sizeof(float)), 0)
          << "element " << i << ": " << result[i] << ", expected " << expected
          << ", in pieces of " << piece;
    }
  }
}

TEST(GroupKernels, HaveTheBitsOfTheTree) {
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

/// A kernel of two results, with a bias and a mask, whose left factor is the
/// same on all devices.
std::string getSharedSource(const Gemm &gemm) {
  const std::string a = tensor({gemm.m, gemm.k}), bias = tensor({gemm.n}),
                    b = gemm.transposeRhs ? tensor({gemm.n, gemm.k})
                                          : tensor({gemm.k, gemm.n}),
                    c = tensor({gemm.m, gemm.n}),
                    bits = tensor({gemm.m, gemm.n}, "i1");
  const std::string columns =
      "{shardc.sharding = #shardc.sharding<@mesh, [{}, {\"model\"}]>}";
  return "module {\n  shardc.mesh @mesh <[\"model\" = " +
         std::to_string(gemm.devices) +
         ", \"data\" = 2]>\n  func.func @f(%a: " + a +
         " {shardc.sharding = #shardc.sharding<@mesh, [{\"data\"}, {}]>}" +
         ", %b: " + b + " " + columns + ", %bias: " + bias +
         " {shardc.sharding = #shardc.sharding<@mesh, [{\"model\"}]>}, %m: " +
         c + " " + columns + ") -> (" + c + ", " + c +
         ") {\n    %0:2 = shardc.kernel(%a, %b, %bias, %m) : (" + a + ", " + b +
         ", " + bias + ", " + c + ") -> (" + c + ", " + c +
         ") {\n    ^bb0(%x: " + a + ", %y: " + b + ", %z: " + bias +
         ", %n: " + c +
         "):\n      %1 = shardc.dot_general %x, %y contracting = [1] x [" +
         (gemm.transposeRhs ? "1" : "0") + "] : " + a + ", " + b + " -> " + c +
         "\n      %2 = shardc.broadcast %z dims = [1] : " + bias + " -> " + c +
         "\n      %3 = shardc.add %1, %2 : " + c +
         "\n      %4 = shardc.constant dense<0.0> : " + c +
         "\n      %5 = shardc.max %3, %4 : " + c +
         "\n      %6 = shardc.compare gt %n, %4 : " + c + " -> " + bits +
         "\n      %7 = shardc.select %6, %1, %4 : " + bits + ", " + c +
         "\n      shardc.yield %5, %7 : " + c + ", " + c +
         "\n    }\n    return %0#0, %0#1 : " + c + ", " + c + "\n  }\n}\n";
}

void expectSideBySide(const Gemm &gemm, Mapping mapping) {
  SCOPED_TRACE(getSharedSource(gemm));
  Functions functions(getSharedSource(gemm), mapping);
  ASSERT_TRUE(functions.one && functions.group);
  const int64_t extent = functions.extent, results = gemm.m * gemm.n;
  std::mt19937 random(7);
  auto makeOperand = [&](int64_t elements) {
    std::vector<float> operand(elements);
    for (float &element : operand)
      element = std::uniform_real_distribution<float>(-2, 2)(random);
    return operand;
  };
  std::vector<std::vector<float>> operands, expected;
  operands.push_back(makeOperand(gemm.m * gemm.k));
  std::vector<void *> table;
  int64_t coordinates[4] = {};
  for (int64_t device = 0; device < gemm.devices; ++device) {
    std::vector<void *> buffers{operands[0].data()};
    for (int64_t elements : {gemm.k * gemm.n, gemm.n, results})
      buffers.push_back(operands.emplace_back(makeOperand(elements)).data());
    table.insert(table.end(), buffers.begin(), buffers.end());
    for (int result = 0; result < 2; ++result)
      buffers.push_back(expected.emplace_back(results).data());
    functions.one(buffers.data(), coordinates, 0, extent);
  }
  const size_t reads = table.size();
  // The second result may take the place of the mask, which it alone reads.
  for (bool inPlace : {false, true})
    for (int64_t piece : {extent, int64_t(1), int64_t(3)}) {
      std::vector<std::vector<float>> found(expected.size(),
                                            std::vector<float>(results, NAN));
      table.resize(reads);
      for (int64_t device = 0; device < gemm.devices; ++device) {
        void *&mask = table[4 * device + 3];
        mask = operands[3 * device + 3].data();
        if (inPlace) {
          found[2 * device + 1] = operands[3 * device + 3];
          mask = found[2 * device + 1].data();
        }
      }
      for (std::vector<float> &result : found)
        table.push_back(result.data());
      for (int64_t begin = 0; begin < extent; begin += piece)
        functions.group(table.data(), coordinates, begin,
                        std::min(begin + piece, extent));
      for (size_t number = 0; number < found.size(); ++number)
        ASSERT_EQ(std::memcmp(found[number].data(), expected[number].data(),
                              results * sizeof(float)),
                  0)
            << "result " << number << " in pieces of " << piece;
    }
}

TEST(GroupKernels, HaveTheBitsOfEachDevice) {
  std::vector<Gemm> gemms;
  for (bool transposeRhs : {false, true})
    // Two devices in a vector, or one; vectors and panels that are not full;
    // rows that are no whole tiles, with chains of their own; few terms.
    for (int64_t n : {4, 8}) {
      for (int64_t devices : {2, 3, 4, 8, 16})
        gemms.push_back({devices, 1024, n, 10, transposeRhs});
      for (int64_t m : {1, 2, 7, 37, 49, 1001, 1021})
        gemms.push_back({3, m, n, 9, transposeRhs});
      for (int64_t k : {1, 2, 16, 100})
        gemms.push_back({5, 200, n, k, transposeRhs});
    }
  for (const Gemm &gemm : gemms) {
    expectSideBySide(gemm, Mapping::CPU);
    if (hasWideVectors())
      expectSideBySide(gemm, Mapping::WideCPU);
  }
}

} // namespace
} // namespace shardc
