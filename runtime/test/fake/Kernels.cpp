//===- Kernels.cpp - The fake's kernels -----------------------------------===//

#include "State.h"

#include "base/ReductionTree.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <sstream>

using namespace shardc::rt::test;

std::vector<size_t> shardc::rt::test::parameterSizes(const std::string &ptx,
                                                     const std::string &name) {
  size_t begin = ptx.find(".entry " + name + "(");
  if (begin == std::string::npos)
    return {};
  begin = ptx.find('(', begin);
  std::istringstream words(ptx.substr(begin + 1, ptx.find(')', begin) - begin));
  std::vector<size_t> sizes;
  for (std::string word; words >> word;) {
    if (word == ".u32" || word == ".b32")
      sizes.push_back(4);
    else if (word == ".u64" || word == ".b64")
      sizes.push_back(8);
    else if (size_t open = word.find('['); open != std::string::npos)
      sizes.push_back(std::stoul(word.substr(open + 1)));
  }
  return sizes;
}

namespace {

template <typename T>
T read(const std::vector<char> &argument) {
  T value;
  std::memcpy(&value, argument.data(), sizeof(T));
  return value;
}

/// bf16 as the upper half of an f32, rounded to nearest, ties to even.
struct Bf16 {
  uint16_t bits;

  Bf16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    bits =
        std::isnan(value) ? 0x7fff : (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
  }
  operator float() const {
    uint32_t wide = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, 4);
    return value;
  }
};

/// Integers wrap around, as on a GPU.
template <typename T>
T add(T lhs, T rhs) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(lhs) +
                          static_cast<Unsigned>(rhs));
  } else {
    return lhs + rhs;
  }
}

/// The interface of ReduceKernels.h, an element after the other. `Wide` is the
/// type of sums.
template <typename T, typename Wide>
void reduce(const std::vector<std::vector<char>> &arguments, bool isSum) {
  auto width = read<uint64_t>(arguments[0]),
       rows = read<uint64_t>(arguments[1]);
  auto inPitch = read<uint64_t>(arguments[2]);
  auto outPitch = read<uint64_t>(arguments[3]);
  auto operands = read<uint32_t>(arguments[4]);
  auto results = read<uint32_t>(arguments[5]);
  const auto *addresses =
      reinterpret_cast<const CUdeviceptr *>(arguments[6].data());
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < width; ++column) {
      auto in = [&](uint32_t i) -> Wide {
        return static_cast<const T *>(
            pointer(addresses[i]))[row * inPitch + column];
      };
      // Of the operands from `first` on.
      auto reduceNode = [&](auto &&self, int64_t first,
                            int64_t leaves) -> Wide {
        if (leaves == 1)
          return in(first);
        int64_t ofLeft = shardc::rt::leavesOfLeft(leaves);
        Wide left = self(self, first, ofLeft);
        Wide right = self(self, first + ofLeft, leaves - ofLeft);
        if (isSum)
          return add(left, right);
        return right > left || std::isnan(double(right)) ? right : left;
      };
      Wide sum = reduceNode(reduceNode, 0, operands);
      for (uint32_t i = 0; i < results; ++i)
        static_cast<T *>(
            pointer(addresses[operands + i]))[row * outPitch + column] = sum;
    }
}

KernelBody findReduction(const std::string &name) {
  bool isSum = name.find("_sum_") != std::string::npos;
  std::string type = name.substr(name.rfind('_') + 1);
  using Arguments = const std::vector<std::vector<char>> &;
  void (*run)(Arguments, bool) = nullptr;
  if (type == "f32")
    run = reduce<float, float>;
  else if (type == "bf16")
    run = reduce<Bf16, float>;
  else if (type == "f64")
    run = reduce<double, double>;
  else if (type == "i32")
    run = reduce<int32_t, int32_t>;
  else if (type == "i64")
    run = reduce<int64_t, int64_t>;
  else if (type == "bool")
    run = reduce<uint8_t, uint8_t>;
  if (!run)
    return {};
  return [=](Arguments arguments, unsigned) { run(arguments, isSum); };
}

} // namespace

KernelBody shardc::rt::test::findKernel(const std::string &name,
                                        const std::string &path) {
  if (name.rfind("shardc_reduce_", 0) == 0 &&
      (name.find("_sum_") != std::string::npos ||
       name.find("_max_") != std::string::npos))
    if (KernelBody body = findReduction(name))
      return body;
  std::shared_ptr<void> library(
      path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL),
      [](void *handle) {
        if (handle)
          dlclose(handle);
      });
  using Function =
      void (*)(void *const *, const int64_t *, int64_t begin, int64_t end);
  auto function = reinterpret_cast<Function>(
      library ? dlsym(library.get(), name.c_str()) : nullptr);
  if (!function)
    return {};
  return [library, function](const std::vector<std::vector<char>> &arguments,
                             unsigned blocks) {
    std::vector<void *> buffers;
    for (const std::vector<char> &argument : arguments)
      buffers.push_back(pointer(read<CUdeviceptr>(argument)));
    auto *context = static_cast<const int64_t *>(buffers.back());
    function(buffers.data(), context, 0, blocks);
  };
}
