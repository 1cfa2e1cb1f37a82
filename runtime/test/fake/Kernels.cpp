//===- Kernels.cpp - The fake's kernels -----------------------------------===//

#include "State.h"

#include "backends/cuda/BoxTable.h"
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

/// `Wide` is the type of sums.
template <typename T, typename Wide>
void reduce(bool isSum, const std::vector<const void *> &in,
            const std::vector<void *> &out, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes / sizeof(T); ++i) {
    // Of the operands from `first` on.
    auto reduceNode = [&](auto &&self, int64_t first, int64_t leaves) -> Wide {
      if (leaves == 1)
        return static_cast<const T *>(in[first])[i];
      int64_t ofLeft = shardc::rt::leavesOfLeft(leaves);
      Wide left = self(self, first, ofLeft);
      Wide right = self(self, first + ofLeft, leaves - ofLeft);
      if (isSum)
        return add(left, right);
      return right > left || std::isnan(double(right)) ? right : left;
    };
    Wide value = reduceNode(reduceNode, 0, in.size());
    for (void *result : out)
      static_cast<T *>(result)[i] = value;
  }
}

/// The interface of CollectivePtx.h, a box after the other.
void runBoxes(const std::vector<std::vector<char>> &arguments, unsigned blocks,
              const RowReduction &reduceRow) {
  const auto *entries =
      static_cast<const char *>(pointer(read<CUdeviceptr>(arguments[0])));
  const auto *entryOfBlock =
      static_cast<const uint32_t *>(pointer(read<CUdeviceptr>(arguments[1])));
  const auto operands = read<uint32_t>(arguments[2]),
             results = read<uint32_t>(arguments[3]);
  for (unsigned block = 0; block < blocks; ++block) {
    const char *at = entries + entryOfBlock[block] * (sizeof(BoxEntry) +
                                                      8 * (operands + results));
    BoxEntry entry;
    std::memcpy(&entry, at, sizeof(entry));
    if (entry.firstBlock != block)
      continue;
    std::vector<CUdeviceptr> addresses(operands + results);
    std::memcpy(addresses.data(), at + sizeof(entry), 8 * addresses.size());
    std::vector<const void *> in(operands);
    std::vector<void *> out(results);
    for (uint64_t row = 0; row < entry.height; ++row) {
      for (uint32_t i = 0; i < operands; ++i)
        in[i] = pointer(addresses[i] + row * entry.inPitch);
      for (uint32_t i = 0; i < results; ++i)
        out[i] = pointer(addresses[operands + i] + row * entry.outPitch);
      reduceRow(in, out, entry.width << entry.unitShift);
    }
  }
}

/// What a kernel of collectives does with a row; empty if it is none.
RowReduction findRowReduction(const std::string &name) {
  if (name == "shardc_copy_boxes")
    return [](const std::vector<const void *> &in,
              const std::vector<void *> &out, uint64_t bytes) {
      for (void *result : out)
        std::memmove(result, in[0], bytes);
    };
  for (bool isSum : {false, true}) {
    const std::string prefix =
        isSum ? "shardc_reduce_sum_" : "shardc_reduce_max_";
    if (name.rfind(prefix, 0) == 0)
      return findReduction(name.substr(prefix.size()), isSum);
  }
  return {};
}

} // namespace

RowReduction shardc::rt::test::findReduction(const std::string &type,
                                             bool isSum) {
  void (*run)(bool, const std::vector<const void *> &,
              const std::vector<void *> &, uint64_t) = nullptr;
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
  return
      [=](const std::vector<const void *> &in, const std::vector<void *> &out,
          uint64_t bytes) { run(isSum, in, out, bytes); };
}

KernelBody shardc::rt::test::findKernel(const std::string &name,
                                        const std::string &path) {
  if (RowReduction reduceRow = findRowReduction(name))
    return [=](const std::vector<std::vector<char>> &arguments,
               unsigned blocks) { runBoxes(arguments, blocks, reduceRow); };
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
