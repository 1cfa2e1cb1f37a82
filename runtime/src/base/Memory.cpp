//===- Memory.cpp - Memory in large pages ---------------------------------===//
//
// Visible memory is an anonymous file (memfd_create), which others open by
// their view of this process in /proc. No name is left behind, however a
// process ends, and no file system limits it. Systems rarely give such files
// large pages by themselves; since Linux 6.1 madvise makes them at once.
//
//===----------------------------------------------------------------------===//

#include "base/Memory.h"

#include <algorithm>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardc::rt;

static constexpr uint64_t largePage = uint64_t(2) << 20;
// Of Linux 5.14, 6.1 and 6.3; the headers may be older.
static constexpr int populateForWriting = 23; ///< MADV_POPULATE_WRITE
static constexpr int collapsePages = 25;      ///< MADV_COLLAPSE
static constexpr unsigned notExecutable = 8;  ///< MFD_NOEXEC_SEAL

/// Addresses for `count` bytes behind a multiple of a large page, and for a
/// large page more; null: there are not as many.
static char *reserve(uint64_t count, int protection) {
  void *mapped = mmap(nullptr, count + largePage, protection,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<char *>(mapped);
}

static char *alignToLargePage(char *place) {
  const uint64_t within = reinterpret_cast<uintptr_t>(place) % largePage;
  return place + (largePage - within) % largePage;
}

bool Memory::allocate(uint64_t count) {
  count = std::max<uint64_t>(count, 1);
  uint64_t wanted = (count + largePage - 1) / largePage * largePage;
  data = reserve(wanted, PROT_READ | PROT_WRITE);
  if (!data)
    return false;
  bytes = wanted + largePage;
  first = alignToLargePage(data);
  // What is behind the last whole one is small beside many, and would cost
  // another.
  constexpr uint64_t many = 8 * largePage;
  madvise(first, count < many ? wanted : count / largePage * largePage,
          MADV_HUGEPAGE);
  return true;
}

/// Puts a file of `count` bytes, in large pages, in the place of the first
/// bytes. If that fails they are as before.
bool Memory::placeFile(uint64_t count) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < count)
    return false; // Beyond that a signal ends the process.
  int descriptor = memfd_create("shardc", MFD_CLOEXEC | notExecutable);
  if (descriptor < 0)
    descriptor = memfd_create("shardc", MFD_CLOEXEC);
  if (descriptor < 0)
    return false;
  struct stat status = {};
  if (ftruncate(descriptor, static_cast<off_t>(count)) == 0 &&
      fstat(descriptor, &status) == 0 &&
      mmap(first, count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
           descriptor, 0) != MAP_FAILED) {
    file = {getpid(), descriptor, status.st_dev, status.st_ino, count, 0};
    // A page that is there becomes a large one. Some may stay small.
    bool hasLargePages = true, isThere = true;
    for (uint64_t at = 0; at < count && hasLargePages && isThere;
         at += largePage) {
      isThere = madvise(first + at, 4096, populateForWriting) == 0;
      if (madvise(first + at, largePage, collapsePages) != 0)
        hasLargePages = at > 0;
    }
    if (hasLargePages && isThere)
      return true;
    // Where there are none, memory of this process alone is faster.
    file = {};
    mmap(first, count, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    madvise(first, count, MADV_HUGEPAGE);
  }
  close(descriptor);
  return false;
}

bool Memory::allocateVisible(uint64_t count) {
  if (!allocate(count))
    return false;
  placeFile(bytes - largePage);
  return true;
}

std::optional<VisiblePlace> Memory::visiblePlace(const void *address) const {
  auto *byte = static_cast<const char *>(address);
  if (file.descriptor < 0 || byte < first || byte >= first + file.bytes)
    return std::nullopt;
  VisiblePlace place = file;
  place.offset = byte - first;
  return place;
}

Memory::~Memory() {
  if (file.descriptor >= 0)
    close(static_cast<int>(file.descriptor));
  if (bytes > 0)
    munmap(data, bytes);
}

bool VisibleMemory::map(const VisiblePlace &place) {
  // Where processes do not see the same ones, another one may have this number:
  // its files are not opened.
  const std::string path = "/proc/" + std::to_string(place.process) + "/fd/" +
                           std::to_string(place.descriptor);
  auto isTheFile = [&](const struct stat &status) {
    return status.st_dev == place.device && status.st_ino == place.file;
  };
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0 || !isTheFile(status))
    return false;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return false;
  bool isMapped = false;
  if (fstat(descriptor, &status) == 0 && isTheFile(status) &&
      (data = reserve(place.bytes, PROT_NONE))) {
    first = alignToLargePage(data);
    bytes = place.bytes + largePage;
    isMapped = mmap(first, place.bytes, PROT_READ, MAP_SHARED | MAP_FIXED,
                    descriptor, 0) != MAP_FAILED;
  }
  close(descriptor);
  if (!isMapped)
    first = nullptr;
  return isMapped;
}

VisibleMemory::~VisibleMemory() {
  if (data)
    munmap(data, bytes);
}
