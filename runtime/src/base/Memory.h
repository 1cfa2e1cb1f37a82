//===- Memory.h - Memory in large pages -------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_MEMORY_H
#define SHARDC_RT_SRC_BASE_MEMORY_H

#include <algorithm>
#include <cstdint>
#include <sys/mman.h>
#include <utility>

namespace shardc::rt {

/// Memory of zeros, in large pages where the system has them.
class Memory {
public:
  Memory() = default;
  Memory(Memory &&other) noexcept
      : data(std::exchange(other.data, nullptr)),
        first(std::exchange(other.first, nullptr)),
        bytes(std::exchange(other.bytes, 0)) {}
  Memory &operator=(Memory &&) = delete;
  ~Memory() {
    if (bytes > 0)
      munmap(data, bytes);
  }

  /// Returns whether there is enough. A page is allocated near the thread that
  /// first accesses it.
  bool allocate(uint64_t count) {
    constexpr uint64_t unit = uint64_t(2) << 20;
    // A large page begins at a multiple of its size.
    uint64_t wanted = (std::max<uint64_t>(count, 1) + unit - 1) / unit * unit;
    void *mapped = mmap(nullptr, wanted + unit, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      return false;
    data = static_cast<char *>(mapped);
    bytes = wanted + unit;
    first = data + (unit - reinterpret_cast<uintptr_t>(data) % unit) % unit;
    // What is behind the last whole one is small beside many, and would cost
    // another.
    constexpr uint64_t many = 8 * unit;
    madvise(first, count < many ? wanted : count / unit * unit, MADV_HUGEPAGE);
    return true;
  }

  /// Allocates the pages of the first `count` bytes now.
  void touch(uint64_t count) {
    constexpr uint64_t page = 4096;
    for (uint64_t at = 0; at < count; at += page)
      static_cast<volatile char *>(first)[at] = 0;
  }

  char *get() const { return first; }

private:
  char *data = nullptr, *first = nullptr;
  uint64_t bytes = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_MEMORY_H
