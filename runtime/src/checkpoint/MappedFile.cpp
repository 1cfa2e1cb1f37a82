//===- MappedFile.cpp - A file in memory ----------------------------------===//

#include "checkpoint/MappedFile.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace shardc::rt;

absl::StatusOr<MappedFile> MappedFile::open(const std::string &path) {
  // Opening a pipe would wait for its writer.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  struct stat status;
  bool isRegular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  size_t size = isRegular ? status.st_size : 0;
  void *data = nullptr;
  // A mapping of nothing is an error.
  if (size > 0)
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  int error = errno;
  close(file);
  if (!isRegular)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it is not a regular file"));
  if (data == MAP_FAILED)
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": cannot map: ", std::strerror(error)));
  return MappedFile(static_cast<const char *>(data), size);
}

MappedFile::MappedFile(MappedFile &&other) noexcept
    : data(std::exchange(other.data, nullptr)),
      size(std::exchange(other.size, 0)) {}

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(data, other.data);
  std::swap(size, other.size);
  return *this;
}

MappedFile::~MappedFile() {
  if (size > 0)
    munmap(const_cast<char *>(data), size);
}

void shardc::rt::readAhead(absl::string_view mapped) {
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<uintptr_t>(mapped.data()) & -page;
  const auto end = reinterpret_cast<uintptr_t>(mapped.data()) + mapped.size();
  // Only a hint.
  madvise(reinterpret_cast<void *>(begin), end - begin, MADV_WILLNEED);
}
