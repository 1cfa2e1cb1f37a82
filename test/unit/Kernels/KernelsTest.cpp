//===- KernelsTest.cpp - Generated kernels against plain loops ------------===//
//
// Each case writes a kernel as text, compiles and links it as a plan would,
// loads it and compares with the results of plain C++ in double precision, over
// sizes that are 1, odd, and not multiples of a vector.
//
//===----------------------------------------------------------------------===//

#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Pipelines/Phases.h"
#include "shardc/Target/CPU/CompileKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Error.h"

#include <cmath>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace {

using Function = void (*)(void *const *, const int64_t *, int64_t, int64_t);

/// Those of kernels and of what they are lowered to.
DialectRegistry getDialects() {
  DialectRegistry registry;
  shardc::registerShardcDialects(registry);
  registry.insert<scf::SCFDialect, arith::ArithDialect, math::MathDialect,
                  vector::VectorDialect, cf::ControlFlowDialect>();
  return registry;
}

/// The one kernel of a module, compiled and loaded.
class Kernel {
public:
  explicit Kernel(const std::string &signature, const std::string &body) {
    MLIRContext context(getDialects());
    context.loadAllAvailableDialects();
    std::string text = "module { shardc.mesh @mesh <[\"d\" = 1]>\n"
                       "func.func @train_step" +
                       signature + " {\n" + body + "}}\n";
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(text, ParserConfig(&context));
    if (!module || failed(shardc::lowerKernels(*module))) {
      ADD_FAILURE() << text;
      return;
    }
    module->walk([&](shardc::KernelOp op) {
      name = op->getAttrOfType<StringAttr>(shardc::symbolAttrName).str();
      extent = op->getAttrOfType<IntegerAttr>(shardc::extentAttrName).getInt();
    });
    llvm::Expected<std::string> object = shardc::compileKernels(*module);
    if (!object) {
      ADD_FAILURE() << llvm::toString(object.takeError());
      return;
    }
    file = memfd_create("kernel", MFD_CLOEXEC);
    if (write(file, object->data(), object->size()) !=
        static_cast<ssize_t>(object->size()))
      return;
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(),
                    RTLD_NOW | RTLD_LOCAL);
    if (handle)
      function = reinterpret_cast<Function>(dlsym(handle, name.c_str()));
    EXPECT_NE(function, nullptr);
  }
  ~Kernel() {
    if (handle)
      dlclose(handle);
    close(file);
  }

  void run(std::vector<void *> buffers) {
    int64_t context[] = {0, 0};
    if (!function)
      return;
    // Piece by piece: the iterations are independent.
    for (int64_t i = 0; i < extent; ++i)
      function(buffers.data(), context, i, i + 1);
  }

private:
  std::string name;
  int64_t extent = 0;
  int file = -1;
  void *handle = nullptr;
  Function function = nullptr;
};

std::string tensor(std::vector<int64_t> shape) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + "f32>";
}

std::vector<float> randomValues(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  std::vector<float> values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

/// A kernel from `inputs` to one result, around one op written with %a0, %a1...
Kernel makeKernel(std::vector<std::string> inputs, const std::string &result,
                  const std::string &op) {
  std::string signature = "(", operands, types, arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string comma = i ? ", " : "", number = std::to_string(i);
    signature += comma + "%x" + number + ": " + inputs[i];
    operands += comma + "%x" + number;
    types += comma + inputs[i];
    arguments += comma + "%a" + number + ": " + inputs[i];
  }
  return Kernel(signature + ") -> " + result,
                "%k = shardc.kernel(" + operands + ") : (" + types + ") -> " +
                    result + " {\n^bb0(" + arguments + "):\n" + op +
                    "shardc.yield %r : " + result +
                    "\n}\nreturn %k : " + result + "\n");
}

const int64_t sizes[] = {1, 2, 7, 8, 9, 13, 16, 33, 100};

TEST(KernelsTest, Reductions) {
  for (int64_t rows : sizes)
    for (int64_t columns : sizes)
      for (bool isMax : {false, true})
        for (int kept : {-1, 0, 1}) { // the dimension that stays, if any
          std::vector<int64_t> outShape;
          std::string dims = "[0, 1]";
          if (kept == 0) {
            outShape = {rows};
            dims = "[1]";
          } else if (kept == 1) {
            outShape = {columns};
            dims = "[0]";
          }
          std::string in = tensor({rows, columns}), out = tensor(outShape);
          Kernel kernel = makeKernel(
              {in}, out,
              "%r = shardc.reduce " + std::string(isMax ? "max" : "sum") +
                  " %a0 dims = " + dims + " : " + in + " -> " + out + "\n");
          std::vector<float> values = randomValues(rows * columns, 1);
          std::vector<float> result(outShape.empty() ? 1 : outShape[0], 99.0f);
          kernel.run({values.data(), result.data()});
          for (size_t i = 0; i < result.size(); ++i) {
            double expected = isMax ? -1e30 : 0;
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t c = 0; c < columns; ++c) {
                if ((kept == 0 && r != int64_t(i)) ||
                    (kept == 1 && c != int64_t(i)))
                  continue;
                double value = values[r * columns + c];
                expected = isMax ? std::max(expected, value) : expected + value;
              }
            ASSERT_NEAR(result[i], expected, 1e-6 * rows * columns)
                << rows << "x" << columns << " kept " << kept;
          }
        }
}

TEST(KernelsTest, Gemms) {
  for (int64_t m : {1, 5, 6, 17})
    for (int64_t n : {1, 3, 7, 8, 16, 35})
      for (int64_t k : {1, 4, 16, 33})
        for (int form = 0; form < 3; ++form) { // a·b, a·bᵀ, aᵀ·b
          bool lhsFirst = form == 2, rhsLast = form == 1;
          std::string a = lhsFirst ? tensor({k, m}) : tensor({m, k});
          std::string b = rhsLast ? tensor({n, k}) : tensor({k, n});
          std::string c = tensor({m, n});
          Kernel kernel = makeKernel(
              {a, b, tensor({n}), c}, c,
              "%0 = shardc.dot_general %a0, %a1 contracting = [" +
                  std::string(lhsFirst ? "0" : "1") + "] x [" +
                  (rhsLast ? "1" : "0") + "] : " + a + ", " + b + " -> " + c +
                  "\n%1 = shardc.broadcast %a2 dims = [1] : " + tensor({n}) +
                  " -> " + c + "\n%2 = shardc.add %0, %1 : " + c +
                  "\n%r = shardc.add %2, %a3 : " + c + "\n");
          std::vector<float> left = randomValues(m * k, 2);
          std::vector<float> right = randomValues(k * n, 3);
          std::vector<float> bias = randomValues(n, 4);
          std::vector<float> added = randomValues(m * n, 5);
          std::vector<float> result(m * n + 1, 99.0f);
          kernel.run({left.data(), right.data(), bias.data(), added.data(),
                      result.data()});
          ASSERT_EQ(result.back(), 99.0f);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double expected = double(bias[j]) + added[i * n + j];
              for (int64_t l = 0; l < k; ++l)
                expected +=
                    double(lhsFirst ? left[l * m + i] : left[i * k + l]) *
                    (rhsLast ? right[j * k + l] : right[l * n + j]);
              ASSERT_NEAR(result[i * n + j], expected, 1e-5 * k)
                  << m << "x" << n << "x" << k << " form " << form;
            }
        }
}

/// The order of additions is a matter of shape: that of an element in a tile of
/// so many rows is one chain in order, or several that are added up at the end.
TEST(KernelsTest, GemmsOfFewColumnsAddUpInOrder) {
  struct Case {
    int64_t rows, lastRows, chains;
  };
  // 1021 rows are 102 tiles of ten and a row of four chains; 33 three of nine
  // and six rows of two.
  for (auto [m, lastRows, lastChains] :
       {Case{64, 0, 1}, Case{1021, 1, 4}, Case{33, 6, 2}, Case{200, 0, 1},
        Case{250, 0, 1}, Case{1000, 0, 1}})
    for (int64_t n : {2, 3, 4, 5, 6, 7})
      for (int64_t k : {4, 10, 19}) {
        std::string a = tensor({m, k}), b = tensor({k, n}), c = tensor({m, n});
        Kernel kernel =
            makeKernel({a, b}, c,
                       "%r = shardc.dot_general %a0, %a1 contracting = [1] x "
                       "[0] : " +
                           a + ", " + b + " -> " + c + "\n");
        std::vector<float> left = randomValues(m * k, 2);
        std::vector<float> right = randomValues(k * n, 3);
        std::vector<float> result(m * n);
        kernel.run({left.data(), right.data(), result.data()});
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            const int64_t chains = i < m - lastRows ? 1 : lastChains;
            std::vector<float> sums(chains, 0);
            for (int64_t l = 0; l < k; ++l) {
              float &sum = sums[l < k / chains * chains ? l % chains : 0];
              sum = std::fma(left[i * k + l], right[l * n + j], sum);
            }
            float expected = sums[0];
            for (int64_t chain = 1; chain < chains; ++chain)
              expected += sums[chain];
            ASSERT_EQ(result[i * n + j], expected)
                << m << "x" << n << "x" << k << " row " << i;
          }
      }
}

/// What the epilogue of such a GEMM reads is at the places of its elements, in
/// tiles, in groups of four rows behind them and in single rows.
TEST(KernelsTest, GemmsOfFewColumnsHaveEpilogues) {
  constexpr int64_t k = 10;
  auto bitsOf = [](float value) { return llvm::bit_cast<uint32_t>(value); };
  // All of one range, and two ranges that start within a tile.
  for (int64_t m : {30, 31, 45, 4090})
    for (int64_t n : {2, 3, 4, 5, 6}) {
      std::string shape = std::to_string(m) + "x" + std::to_string(n);
      std::string a = tensor({m, k}), b = tensor({k, n}), c = tensor({m, n});
      std::string mask = "tensor<" + shape + "xi1>",
                  half = "tensor<" + shape + "xbf16>", seed = "tensor<i32>",
                  bias = tensor({n}), scale = tensor({m});
      std::string gemm =
          "%r = shardc.dot_general %a0, %a1 contracting = [1] x [0] : " + a +
          ", " + b + " -> " + c + "\n";
      std::string random = " = shardc.random_uniform %a";
      std::string drawn = " stream = 3 : " + seed + " -> " + c + "\n";
      Kernel plain = makeKernel({a, b}, c, gemm);
      Kernel uniform = makeKernel({seed}, c, "%r" + random + "0" + drawn);
      gemm[1] = '0';
      Kernel kernel = makeKernel(
          {a, b, mask, half, seed, bias, scale}, c,
          gemm + "%1 = shardc.convert %a3 : " + half + " -> " + c +
              "\n%2 = shardc.add %0, %1 : " + c + "\n%3" + random + "4" +
              drawn + "%4 = shardc.add %2, %3 : " + c +
              "\n%5 = shardc.broadcast %a5 dims = [1] : " + bias + " -> " + c +
              "\n%6 = shardc.add %4, %5 : " + c +
              "\n%7 = shardc.broadcast %a6 dims = [0] : " + scale + " -> " + c +
              "\n%8 = shardc.mul %6, %7 : " + c +
              "\n%r = shardc.select %a2, %8, %0 : " + mask + ", " + c + "\n");
      std::vector<float> left = randomValues(m * k, 2);
      std::vector<float> right = randomValues(k * n, 3);
      std::vector<float> added = randomValues(m * n, 4);
      std::vector<float> biases = randomValues(n, 5);
      std::vector<float> scales = randomValues(m, 6);
      std::vector<uint8_t> chosen(m * n);
      std::vector<uint16_t> halves(m * n);
      for (int64_t i = 0; i < m * n; ++i) {
        chosen[i] = added[i] > 0;
        halves[i] = bitsOf(added[i]) >> 16;
        added[i] = llvm::bit_cast<float>(uint32_t(halves[i]) << 16);
      }
      int32_t step = 7;
      std::vector<float> product(m * n), numbers(m * n), result(m * n + 8, 99);
      plain.run({left.data(), right.data(), product.data()});
      uniform.run({&step, numbers.data()});
      kernel.run({left.data(), right.data(), chosen.data(), halves.data(),
                  &step, biases.data(), scales.data(), result.data()});
      for (int64_t i = 0; i < m * n; ++i) {
        float expected = product[i];
        if (chosen[i]) {
          expected += added[i];
          expected += numbers[i];
          expected += biases[i % n];
          expected *= scales[i / n];
        }
        ASSERT_EQ(result[i], expected)
            << shape << " row " << i / n << " column " << i % n;
      }
      for (int64_t i = m * n; i < m * n + 8; ++i)
        ASSERT_EQ(result[i], 99) << shape << " wrote behind the result";
    }
}

/// Lanes beside whole vectors are stored in pieces for AVX2, where a masked
/// store is slow, and with a mask for AVX-512. The first alone is run here.
TEST(KernelsTest, FewLanesAreStoredAsTheCpuLikes) {
  MLIRContext context(getDialects());
  context.loadAllAvailableDialects();
  // Rows of seven columns, of eleven, and of eight and four.
  for (auto [columns, lanes, pieces] :
       {std::tuple(
            7, 8,
            std::vector<std::string>{"vector<4xf32>", "vector<2xf32>", "f32"}),
        std::tuple(
            11, 16,
            std::vector<std::string>{"vector<8xf32>", "vector<2xf32>", "f32"}),
        std::tuple(
            12, 16,
            std::vector<std::string>{"vector<8xf32>", "vector<4xf32>"})}) {
    const std::string a = tensor({64, 5}), b = tensor({5, columns}),
                      c = tensor({64, columns});
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
        "module { shardc.mesh @mesh <[\"d\" = 1]>\nfunc.func @f(%a: " + a +
            ", %b: " + b + ") -> " + c + " {\n%k = shardc.kernel(%a, %b) : (" +
            a + ", " + b + ") -> " + c + " {\n^bb0(%a0: " + a + ", %a1: " + b +
            "):\n%r = shardc.dot_general %a0, %a1 " +
            "contracting = [1] x [0] : " + a + ", " + b + " -> " + c +
            "\nshardc.yield %r : " + c + "\n}\nreturn %k : " + c + "\n}}\n",
        ParserConfig(&context));
    ASSERT_TRUE(module);
    ASSERT_TRUE(succeeded(shardc::lowerKernels(*module)));
    OwningOpRef<ModuleOp> wide = shardc::lowerWideKernels(*module);
    ASSERT_TRUE(wide);
    // The types that stores have; masked ones by themselves.
    auto storesOf = [&](Operation *functions, std::set<std::string> &masked) {
      std::set<std::string> types;
      functions->walk([&](Operation *op) {
        if (!isa<LLVM::StoreOp, LLVM::MaskedStoreOp>(op))
          return;
        std::string type;
        llvm::raw_string_ostream(type) << op->getOperand(0).getType();
        (isa<LLVM::StoreOp>(op) ? types : masked).insert(type);
      });
      return types;
    };
    std::set<std::string> maskedNarrow, maskedWide;
    std::set<std::string> narrow = storesOf(*module, maskedNarrow);
    std::set<std::string> ofWide = storesOf(*wide, maskedWide);
    EXPECT_EQ(narrow, std::set<std::string>(pieces.begin(), pieces.end()));
    EXPECT_TRUE(maskedNarrow.empty());
    EXPECT_TRUE(ofWide.empty()) << *ofWide.begin();
    EXPECT_EQ(maskedWide, std::set<std::string>{
                              "vector<" + std::to_string(lanes) + "xf32>"});
  }
}

struct Unary {
  const char *name;
  double (*function)(double);
  float low, high;
  /// Units in the last place of f32 that the result may be off.
  double ulps;
};

class UnaryTest : public testing::TestWithParam<Unary> {};

TEST_P(UnaryTest, IsAccurate) {
  constexpr int64_t count = 20011; // a tail after the vectors
  Unary unary = GetParam();
  std::string type = tensor({count});
  Kernel kernel = makeKernel({type}, type,
                             "%r = shardc." + std::string(unary.name) +
                                 " %a0 : " + type + "\n");
  std::vector<float> values(count), result(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = unary.low + (unary.high - unary.low) * i / (count - 1);
  kernel.run({values.data(), result.data()});
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    double expected = unary.function(values[i]);
    float nearest = static_cast<float>(expected);
    if (std::isinf(nearest)) {
      ASSERT_EQ(result[i], nearest) << values[i];
      continue;
    }
    // Near zero the unit is that of 2^-126.
    double unit =
        std::fmax(std::nextafter(std::fabs(nearest),
                                 std::numeric_limits<float>::infinity()) -
                      std::fabs(nearest),
                  std::numeric_limits<float>::denorm_min());
    if (std::fabs(nearest) < 1.2e-38)
      unit = 1.2e-38;
    worst = std::fmax(worst, std::fabs(result[i] - expected) / unit);
  }
  EXPECT_LE(worst, unary.ulps);
  RecordProperty("worst_ulps", std::to_string(worst));
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
double negate(double x) { return -x; }
double reciprocalRoot(double x) { return 1 / std::sqrt(x); }

INSTANTIATE_TEST_SUITE_P(
    All, UnaryTest,
    testing::Values(Unary{"exp", std::exp, -100, 90, 1},
                    Unary{"expm1", std::expm1, -20, 80, 1.5},
                    Unary{"log", std::log, 1e-6f, 1e4f, 1},
                    Unary{"log1p", std::log1p, -0.99f, 1e4f, 1.5},
                    Unary{"tanh", std::tanh, -20, 20, 2},
                    Unary{"erf", std::erf, -6, 6, 2.5},
                    Unary{"sin", std::sin, -30, 30, 1},
                    Unary{"cos", std::cos, -30, 30, 1},
                    Unary{"sqrt", std::sqrt, 0, 100, 0.5},
                    Unary{"rsqrt", reciprocalRoot, 1e-3f, 100, 1.5},
                    Unary{"abs", std::fabs, -3, 3, 0},
                    Unary{"neg", negate, -3, 3, 0},
                    Unary{"sign", sign, -3, 3, 0}),
    [](const testing::TestParamInfo<Unary> &info) {
      return std::string(info.param.name);
    });

} // namespace
