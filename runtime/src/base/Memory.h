//===- Memory.h - Memory in large pages -------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_MEMORY_H
#define SHARDC_RT_SRC_BASE_MEMORY_H

#include <cstdint>
#include <optional>
#include <utility>

namespace shardc::rt {

/// How another process of the host finds a byte of visible memory. Plain, to be
/// sent.
struct VisiblePlace {
  int64_t process = -1, descriptor = -1; ///< Of whose file it is.
  uint64_t device = 0, file = 0; ///< What that file is, wherever it is found.
  uint64_t bytes = 0;            ///< Of the file.
  uint64_t offset = 0;           ///< In there.
};

/// Memory of zeros, in large pages where the system has them.
class Memory {
public:
  Memory() = default;
  Memory(Memory &&other) noexcept
      : data(std::exchange(other.data, nullptr)),
        first(std::exchange(other.first, nullptr)),
        bytes(std::exchange(other.bytes, 0)),
        file(std::exchange(other.file, {})) {}
  Memory &operator=(Memory &&) = delete;
  ~Memory();

  /// Returns whether there is enough. A page is allocated near the thread that
  /// first accesses it.
  bool allocate(uint64_t count);
  /// Memory that other processes of this host can map (`VisibleMemory`), if the
  /// system has large pages of that kind; otherwise as above. All of it is
  /// allocated now, near this thread.
  bool allocateVisible(uint64_t count);
  /// Of a byte of visible memory; otherwise nothing.
  std::optional<VisiblePlace> visiblePlace(const void *address) const;

  /// Allocates the pages of the first `count` bytes now.
  void touch(uint64_t count) {
    constexpr uint64_t page = 4096;
    for (uint64_t at = 0; at < count; at += page)
      static_cast<volatile char *>(first)[at] = 0;
  }

  char *get() const { return first; }

private:
  bool placeFile(uint64_t count);

  char *data = nullptr, *first = nullptr;
  uint64_t bytes = 0;
  VisiblePlace file; ///< Of the first byte; no descriptor: not visible.
};

/// Visible memory of another process, to be read here. It stays readable when
/// that process has ended.
class VisibleMemory {
public:
  VisibleMemory() = default;
  VisibleMemory(VisibleMemory &&other) noexcept
      : data(std::exchange(other.data, nullptr)),
        first(std::exchange(other.first, nullptr)),
        bytes(std::exchange(other.bytes, 0)) {}
  VisibleMemory &operator=(VisibleMemory &&) = delete;
  ~VisibleMemory();

  /// All of the memory that `place` is in, while that process has it. Returns
  /// whether this process may see it.
  bool map(const VisiblePlace &place);
  char *get() const { return first; }

private:
  char *data = nullptr, *first = nullptr;
  uint64_t bytes = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_MEMORY_H
