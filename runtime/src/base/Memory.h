//===- Memory.h - Memory in large pages -------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_MEMORY_H
#define SHARDC_RT_SRC_BASE_MEMORY_H

#include <cstdint>
#include <optional>
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
  ~Memory();

  /// Returns whether there is enough. A page is allocated near the thread that
  /// first accesses it.
  bool allocate(uint64_t count);
  /// The same, in pages that other processes of this host can map
  /// (`VisibleMemory`), if the system allows it.
  bool allocateVisible(uint64_t count);

  /// Allocates the pages of the first `count` bytes now.
  void touch(uint64_t count) {
    constexpr uint64_t page = 4096;
    for (uint64_t at = 0; at < count; at += page)
      static_cast<volatile char *>(first)[at] = 0;
  }

  char *get() const { return first; }

private:
  bool reserve(uint64_t count);

  char *data = nullptr, *first = nullptr;
  uint64_t bytes = 0;
};

/// How another process of the host finds a byte of visible memory. Plain, to be
/// sent.
struct VisiblePlace {
  int64_t process, descriptor; ///< Of whose file it is.
  uint64_t device, file;       ///< What that file is, wherever it is found.
  uint64_t bytes;              ///< Of the file.
  uint64_t offset;             ///< In there.
};

/// Where `address` is, if it is in visible memory of this process.
std::optional<VisiblePlace> visiblePlace(const void *address);

/// Visible memory of another process, to be read here. It stays readable when
/// that process has ended.
class VisibleMemory {
public:
  VisibleMemory() = default;
  VisibleMemory(VisibleMemory &&other) noexcept
      : first(std::exchange(other.first, nullptr)), bytes(other.bytes) {}
  VisibleMemory &operator=(VisibleMemory &&) = delete;
  ~VisibleMemory();

  /// All of the memory that `place` is in, while that process has it. Returns
  /// whether this process may see it.
  bool map(const VisiblePlace &place);
  char *get() const { return first; }

private:
  char *first = nullptr;
  uint64_t bytes = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_MEMORY_H
