//===- Memory.cpp - Memory in large pages ---------------------------------===//
//
// Visible memory is an anonymous file (memfd_create), which others open by
// their view of this process in /proc. No name is left behind, however a
// process ends, and no file system limits it. Large pages of such files are
// off by default; madvise makes them where it is asked to at once.
//
//===----------------------------------------------------------------------===//

#include "base/Memory.h"

#include <algorithm>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardc::rt;

static constexpr uint64_t unit = uint64_t(2) << 20; ///< A large page.
static constexpr int collapsePages = 25; ///< MADV_COLLAPSE, of Linux 6.1.

namespace {

/// Visible memory of this process, by its first byte.
struct Visible {
  std::mutex mutex;
  std::map<const char *, VisiblePlace> places;
};
} // namespace

static Visible &visible() {
  static Visible *all = new Visible; // Memory of static objects may outlive it.
  return *all;
}

/// Addresses for `count` bytes behind a multiple of a large page.
bool Memory::reserve(uint64_t count) {
  uint64_t wanted = (std::max<uint64_t>(count, 1) + unit - 1) / unit * unit;
  void *mapped = mmap(nullptr, wanted + unit, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return false;
  data = static_cast<char *>(mapped);
  bytes = wanted + unit;
  first = data + (unit - reinterpret_cast<uintptr_t>(data) % unit) % unit;
  return true;
}

/// Of `count` bytes those in large pages. What is behind the last whole one is
/// small beside many, and would cost another.
static uint64_t bytesInLargePages(uint64_t count) {
  constexpr uint64_t many = 8 * unit;
  return (count < many ? count + unit - 1 : count) / unit * unit;
}

bool Memory::allocate(uint64_t count) {
  if (!reserve(count))
    return false;
  madvise(first, bytesInLargePages(std::max<uint64_t>(count, 1)),
          MADV_HUGEPAGE);
  return true;
}

bool Memory::allocateVisible(uint64_t count) {
  if (!allocate(count))
    return false;
  const int descriptor = memfd_create("shardc", MFD_CLOEXEC);
  if (descriptor < 0)
    return true;
  const uint64_t size = bytes - unit;
  struct stat status = {};
  if (ftruncate(descriptor, static_cast<off_t>(size)) != 0 ||
      fstat(descriptor, &status) != 0 ||
      mmap(first, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           descriptor, 0) == MAP_FAILED) {
    close(descriptor);
    return true;
  }
  // A page that has been touched becomes a large one.
  const uint64_t large = bytesInLargePages(std::max<uint64_t>(count, 1));
  for (uint64_t at = 0; at < large; at += unit)
    static_cast<volatile char *>(first)[at] = 0;
  madvise(first, large, collapsePages);
  std::lock_guard<std::mutex> lock(visible().mutex);
  visible().places[first] = {getpid(),      descriptor, status.st_dev,
                             status.st_ino, size,       0};
  return true;
}

Memory::~Memory() {
  if (bytes == 0)
    return;
  {
    std::lock_guard<std::mutex> lock(visible().mutex);
    auto place = visible().places.find(first);
    if (place != visible().places.end()) {
      close(static_cast<int>(place->second.descriptor));
      visible().places.erase(place);
    }
  }
  munmap(data, bytes);
}

std::optional<VisiblePlace> shardc::rt::visiblePlace(const void *address) {
  auto *byte = static_cast<const char *>(address);
  std::lock_guard<std::mutex> lock(visible().mutex);
  auto next = visible().places.upper_bound(byte);
  if (next == visible().places.begin())
    return std::nullopt;
  const auto &[begin, place] = *--next;
  const auto offset = static_cast<uint64_t>(byte - begin);
  if (offset >= place.bytes)
    return std::nullopt;
  VisiblePlace found = place;
  found.offset = offset;
  return found;
}

bool VisibleMemory::map(const VisiblePlace &place) {
  // Another process may have this number where the two do not see the same.
  const std::string path = "/proc/" + std::to_string(place.process) + "/fd/" +
                           std::to_string(place.descriptor);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return false;
  struct stat status = {};
  void *mapped = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && status.st_dev == place.device &&
      status.st_ino == place.file)
    mapped = mmap(nullptr, place.bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (mapped == MAP_FAILED)
    return false;
  first = static_cast<char *>(mapped);
  bytes = place.bytes;
  return true;
}

VisibleMemory::~VisibleMemory() {
  if (first)
    munmap(first, bytes);
}
