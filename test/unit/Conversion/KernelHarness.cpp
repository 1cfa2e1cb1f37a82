//===- KernelHarness.cpp - Compile, load and call one kernel --------------===//

#include "KernelHarness.h"

#include "shardc/Analysis/KernelNest.h"
#include "shardc/Conversion/KernelsToCPU/LowerKernels.h"
#include "shardc/Conversion/KernelsToGPU/EmulateGrid.h"
#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Interpreter/EvaluateCollective.h"
#include "shardc/Interpreter/EvaluateOp.h"
#include "shardc/Target/CPU/CompileKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/bit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace shardc {

KernelHarness::KernelHarness(const std::string &body, Mapping mapping) {
  context.loadDialect<ShardcDialect, func::FuncDialect, LLVM::LLVMDialect,
                      scf::SCFDialect, arith::ArithDialect, math::MathDialect,
                      vector::VectorDialect, cf::ControlFlowDialect,
                      gpu::GPUDialect>();
  // Operands come from a call of nothing: the kernel is alone in its function.
  std::string types = body.substr(1, body.find(')') - 1);
  std::string arguments, names;
  size_t number = 0;
  for (size_t start = 0; start < types.size();) {
    size_t end = types.find(">", start);
    if (end == std::string::npos)
      break;
    std::string type = types.substr(start, end + 1 - start);
    type = type.substr(type.find_first_not_of(", "));
    std::string name = "%a" + std::to_string(number++);
    arguments += (arguments.empty() ? "" : ", ") + name + ": " + type;
    names += (names.empty() ? "" : ", ") + name;
    start = end + 1;
  }
  std::string source = "module {\n  shardc.mesh @mesh <[\"x\" = 2, \"y\" = "
                       "3]>\n  func.func @f(" +
                       arguments + ") {\n    %r:RESULTS = shardc.kernel(" +
                       names + ") : " + body + "\n    return\n  }\n}\n";
  size_t arrow = body.find("->");
  std::string results = body.substr(arrow, body.find('{') - arrow);
  size_t count = 0;
  for (size_t at = results.find("tensor<"); at != std::string::npos;
       at = results.find("tensor<", at + 1))
    ++count;
  source.replace(source.find("RESULTS"), 7, std::to_string(count));

  module = parseSourceString<ModuleOp>(source, &context);
  if (!module) {
    ADD_FAILURE() << "cannot parse:\n" << source;
    return;
  }
  module->walk([&](KernelOp op) { kernel = op; });
  auto lower =
      mapping == Mapping::EmulatedGPU ? lowerKernelsToEmulation : lowerKernels;
  if (failed(lower(*module))) {
    ADD_FAILURE() << "cannot lower:\n" << source;
    return;
  }
  EXPECT_TRUE(succeeded(verify(*module)));
  native.load(*module, mapping);
  auto symbol = kernel->getAttrOfType<StringAttr>(symbolAttrName);
  entry = native.find(symbol.getValue());
  EXPECT_NE(entry, nullptr) << symbol.getValue().str();
  extent = kernel->getAttrOfType<IntegerAttr>(extentAttrName).getInt();
}

void NativeKernels::load(ModuleOp module, Mapping mapping) {
  llvm::Expected<std::string> code = compileKernels(
      module, mapping == Mapping::WideCPU ? getWideTarget() : getBaseTarget());
  if (!code) {
    ADD_FAILURE() << llvm::toString(code.takeError());
    return;
  }
  // Open as long as the library is: the loader takes a path that it has seen
  // for the library that it has.
  file = memfd_create("kernels", 0);
  if (write(file, code->data(), code->size()) != ssize_t(code->size()))
    ADD_FAILURE() << "short write";
  library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(),
                   RTLD_NOW | RTLD_LOCAL);
  if (!library)
    ADD_FAILURE() << dlerror();
}

NativeKernels::Function NativeKernels::find(StringRef name) const {
  return library
             ? reinterpret_cast<Function>(dlsym(library, name.str().c_str()))
             : nullptr;
}

bool hasWideVectors() {
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

NativeKernels::~NativeKernels() {
  if (library)
    dlclose(library);
  if (file >= 0)
    close(file);
}

std::vector<RankedTensorType> KernelHarness::getOperandTypes() {
  std::vector<RankedTensorType> types;
  for (Type type : kernel.getOperandTypes())
    types.push_back(cast<RankedTensorType>(type));
  return types;
}

bool KernelHarness::isElementwise() {
  return !kernel.getBody()
              .walk([](Operation *op) {
                return isa<ReduceOp, DotGeneralOp>(op) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
              })
              .wasInterrupted();
}

void KernelHarness::setInPlace(bool inPlace) {
  places.clear();
  if (!inPlace)
    return;
  std::vector<KernelNest> nests = getKernelNests(kernel);
  llvm::SmallSet<unsigned, 4> taken;
  for (unsigned result = 0; result < kernel.getNumResults(); ++result)
    for (unsigned operand = 0; operand < kernel.getNumOperands(); ++operand)
      if (kernel.getOperand(operand).getType() ==
              kernel.getResult(result).getType() &&
          mayUpdateInPlace(kernel, nests, operand, result) &&
          taken.insert(operand).second) {
        places[result] = operand;
        break;
      }
}

std::vector<Tensor> KernelHarness::makeOperands(std::mt19937 &random) {
  std::vector<Tensor> operands;
  for (RankedTensorType type : getOperandTypes()) {
    Tensor tensor(type.getShape(), 0);
    for (double &place : tensor.data) {
      double value = std::uniform_real_distribution<double>(-2, 2)(random);
      Type element = type.getElementType();
      if (element.isInteger(1))
        value = value > 0;
      else if (isa<IntegerType>(element))
        value = std::floor(4 * value);
      else if (element.isBF16())
        value = std::floor(32 * value) / 32;
      else
        value = float(value);
      place = value;
    }
    operands.push_back(std::move(tensor));
  }
  return operands;
}

/// An element's bytes in memory form.
static void storeElement(Type type, double value, char *to) {
  auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof(typed)); };
  if (type.isF32()) {
    put(float(value));
  } else if (type.isF64()) {
    put(value);
  } else if (type.isInteger(32)) {
    put(int32_t(value));
  } else if (type.isInteger(64)) {
    put(int64_t(value));
  } else if (type.isBF16()) {
    float wide = value;
    uint32_t bits;
    std::memcpy(&bits, &wide, 4);
    put(uint16_t(bits >> 16));
  } else {
    put(uint8_t(value != 0));
  }
}

static double loadElement(Type type, const char *from) {
  auto get = [&](auto typed) {
    std::memcpy(&typed, from, sizeof(typed));
    return double(typed);
  };
  if (type.isF32())
    return get(float());
  if (type.isF64())
    return get(double());
  if (type.isInteger(32))
    return get(int32_t());
  if (type.isInteger(64))
    return get(int64_t());
  if (type.isBF16()) {
    uint16_t half;
    std::memcpy(&half, from, 2);
    uint32_t bits = uint32_t(half) << 16;
    float wide;
    std::memcpy(&wide, &bits, 4);
    return wide;
  }
  return get(uint8_t());
}

std::vector<Tensor> KernelHarness::run(const std::vector<Tensor> &operands,
                                       int64_t piece, int64_t x, int64_t y) {
  // Buffers of exactly their size between guards that must stay as they are.
  const size_t guard = 64 + offset;
  constexpr char fill = 0x5a;
  std::vector<std::vector<char>> buffers;
  std::vector<RankedTensorType> types = getOperandTypes();
  for (Type type : kernel.getResultTypes())
    types.push_back(cast<RankedTensorType>(type));
  auto getSize = [](RankedTensorType type) {
    return size_t((type.getElementTypeBitWidth() + 7) / 8);
  };
  for (size_t i = 0; i < types.size(); ++i) {
    size_t size = getSize(types[i]);
    buffers.emplace_back(2 * guard + types[i].getNumElements() * size, fill);
    if (i < operands.size())
      for (int64_t e = 0; e < types[i].getNumElements(); ++e)
        storeElement(types[i].getElementType(), operands[i].data[e],
                     &buffers[i][guard + e * size]);
  }
  std::vector<void *> pointers;
  for (auto &buffer : buffers)
    pointers.push_back(buffer.data() + guard);
  for (auto [result, operand] : places)
    pointers[operands.size() + result] = pointers[operand];
  int64_t context[] = {x, y, /*seed=*/42};
  if (piece == 0)
    piece = extent;
  for (int64_t begin = 0; begin < extent; begin += piece)
    entry(pointers.data(), context, begin, std::min(begin + piece, extent));
  std::vector<Tensor> results;
  for (size_t i = 0; i < types.size(); ++i) {
    for (size_t byte = 0; byte < guard; ++byte) {
      EXPECT_EQ(buffers[i][byte], fill) << "before buffer " << i;
      EXPECT_EQ(buffers[i][buffers[i].size() - 1 - byte], fill)
          << "behind buffer " << i;
    }
    if (i < operands.size())
      continue;
    Tensor tensor(types[i].getShape(), 0);
    for (int64_t e = 0; e < types[i].getNumElements(); ++e)
      tensor.data[e] =
          loadElement(types[i].getElementType(),
                      static_cast<char *>(pointers[i]) + e * getSize(types[i]));
    results.push_back(std::move(tensor));
  }
  return results;
}

std::vector<Tensor>
KernelHarness::runOnOwnBytes(const std::vector<Tensor> &operands, int64_t piece,
                             int64_t x, int64_t y) {
  constexpr char poison = ~0;
  std::vector<RankedTensorType> types = getOperandTypes();
  for (Type type : kernel.getResultTypes())
    types.push_back(cast<RankedTensorType>(type));
  auto getSize = [](RankedTensorType type) {
    return size_t((type.getElementTypeBitWidth() + 7) / 8);
  };
  std::vector<std::vector<char>> whole;
  for (auto [i, type] : llvm::enumerate(types)) {
    std::vector<char> &bytes =
        whole.emplace_back(type.getNumElements() * getSize(type), poison);
    for (int64_t e = 0; i < operands.size() && e < type.getNumElements(); ++e)
      storeElement(type.getElementType(), operands[i].data[e],
                   &bytes[e * getSize(type)]);
  }
  int64_t context[] = {x, y, /*seed=*/42};
  int64_t partBegin = 0;
  auto parts = kernel->getAttrOfType<ArrayAttr>(partsAttrName);
  for (auto part : parts.getAsRange<DictionaryAttr>()) {
    auto buffers = part.getAs<DenseI64ArrayAttr>("buffers").asArrayRef();
    auto bytesOf = part.getAs<DenseI64ArrayAttr>("bytes").asArrayRef();
    const int64_t count = part.getAs<IntegerAttr>("extent").getInt();
    for (int64_t begin = 0; begin < count; begin += piece) {
      const int64_t end = std::min(begin + piece, count);
      auto isOwn = [&](size_t buffer, size_t byte) {
        for (auto [touched, each] : llvm::zip_equal(buffers, bytesOf))
          if (touched == int64_t(buffer))
            return each == 0 || (int64_t(byte) >= begin * each &&
                                 int64_t(byte) < end * each);
        return false;
      };
      std::vector<std::vector<char>> found = whole;
      std::vector<void *> pointers;
      for (auto [i, buffer] : llvm::enumerate(found)) {
        for (size_t byte = 0; i < operands.size() && byte < buffer.size();
             ++byte)
          if (!isOwn(i, byte))
            buffer[byte] = poison;
        pointers.push_back(buffer.data());
      }
      entry(pointers.data(), context, partBegin + begin, partBegin + end);
      for (size_t i = operands.size(); i < found.size(); ++i) {
        for (size_t byte = 0; byte < found[i].size(); ++byte)
          if (!isOwn(i, byte) && found[i][byte] != whole[i][byte])
            ADD_FAILURE() << "iterations from " << begin << " write byte "
                          << byte << " of result " << i - operands.size();
        whole[i] = found[i];
      }
    }
    partBegin += count;
  }
  std::vector<Tensor> results;
  for (size_t i = operands.size(); i < types.size(); ++i) {
    Tensor &tensor = results.emplace_back(types[i].getShape(), 0);
    for (int64_t e = 0; e < types[i].getNumElements(); ++e)
      tensor.data[e] = loadElement(types[i].getElementType(),
                                   &whole[i][e * getSize(types[i])]);
  }
  return results;
}

std::vector<Tensor>
KernelHarness::interpret(const std::vector<Tensor> &operands, int64_t x,
                         int64_t y) {
  Devices devices(MeshAxes({{"x", 2}, {"y", 3}}));
  int64_t device = 3 * x + y;
  llvm::DenseMap<Value, Tensor> values;
  Block &body = kernel.getBody().front();
  for (auto [argument, tensor] : llvm::zip(body.getArguments(), operands))
    values[argument] = tensor;
  for (Operation &op : body.without_terminator()) {
    if (isCollective(&op)) {
      // A slice of a tensor that every device holds.
      DeviceTensors operand(devices.getNumDevices(), values[op.getOperand(0)]);
      values[op.getResult(0)] =
          evaluateCollective(&op, 0, operand, devices)[device];
      continue;
    }
    std::vector<const Tensor *> inputs;
    for (Value operand : op.getOperands())
      inputs.push_back(&values[operand]);
    FailureOr<Tensor> result = evaluateOp(&op, inputs, devices, device);
    EXPECT_TRUE(succeeded(result));
    values[op.getResult(0)] = succeeded(result) ? *result : Tensor();
  }
  std::vector<Tensor> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(values[value]);
  return results;
}

static void expectSameBits(const std::vector<Tensor> &actual,
                           const std::vector<Tensor> &expected,
                           const std::string &what) {
  for (size_t i = 0; i < actual.size(); ++i)
    for (size_t e = 0; e < actual[i].data.size(); ++e)
      // By ==, zeros of different signs would be equal and NaNs never.
      ASSERT_EQ(llvm::bit_cast<uint64_t>(actual[i].data[e]),
                llvm::bit_cast<uint64_t>(expected[i].data[e]))
          << "result " << i << " element " << e << " " << what;
}

static void expectNear(const std::vector<Tensor> &actual,
                       const std::vector<Tensor> &expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    double largest = 1e-30;
    for (double value : expected[i].data)
      if (std::isfinite(value))
        largest = std::max(largest, std::abs(value));
    ASSERT_EQ(actual[i].data.size(), expected[i].data.size());
    for (size_t e = 0; e < actual[i].data.size(); ++e) {
      // NaN marks elements that an op leaves undefined.
      if (std::isnan(expected[i].data[e]))
        continue;
      ASSERT_NEAR(actual[i].data[e], expected[i].data[e], tolerance * largest)
          << "result " << i << " element " << e;
    }
  }
}

void expectKernelMatches(const std::string &body, double tolerance,
                         unsigned seed) {
  SCOPED_TRACE(body);
  KernelHarness onCPU(body), onWideCPU(body, Mapping::WideCPU),
      onGPU(body, Mapping::EmulatedGPU);
  if (!onCPU.isReady() || !onWideCPU.isReady() || !onGPU.isReady())
    return;
  EXPECT_EQ(onWideCPU.getExtent(), onCPU.getExtent());
  std::mt19937 random(seed);
  std::vector<Tensor> operands = onCPU.makeOperands(random);
  for (int64_t x = 0; x < 2; ++x) {
    int64_t y = 2 * x;
    SCOPED_TRACE("device " + std::to_string(x));
    std::vector<Tensor> expected = onCPU.interpret(operands, x, y);
    for (KernelHarness *harness : {&onCPU, &onGPU}) {
      SCOPED_TRACE(harness == &onCPU ? "loops of the CPU" : "loops of a GPU");
      std::vector<Tensor> actual = harness->run(operands, 0, x, y);
      expectNear(actual, expected, tolerance);
      for (int64_t piece : {1, 2, 3})
        expectSameBits(harness->run(operands, piece, x, y), actual,
                       "in pieces of " + std::to_string(piece));
    }
    const int64_t third = std::max<int64_t>(1, onCPU.getExtent() / 3);
    if (onCPU.getExtent() > 1)
      expectSameBits(onCPU.runOnOwnBytes(operands, third, x, y),
                     onCPU.run(operands, 0, x, y), "on its own bytes");
    if (hasWideVectors())
      for (int64_t piece : {0, 1, 2, 3})
        expectSameBits(onWideCPU.run(operands, piece, x, y),
                       onCPU.run(operands, 0, x, y), "on CPUs with AVX-512");
    for (KernelHarness *harness : {&onCPU, &onWideCPU, &onGPU}) {
      if (harness == &onWideCPU && !hasWideVectors())
        continue;
      std::vector<Tensor> apart = harness->run(operands, 0, x, y);
      harness->setInPlace(true);
      for (int64_t piece : {0, 1, 2})
        expectSameBits(harness->run(operands, piece, x, y), apart, "in place");
      harness->setInPlace(false);
    }
    if (onCPU.isElementwise())
      expectSameBits(onGPU.run(operands, 0, x, y), onCPU.run(operands, 0, x, y),
                     "on CPU and GPU");
  }
}

} // namespace shardc
