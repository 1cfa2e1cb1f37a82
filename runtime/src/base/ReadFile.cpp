//===- ReadFile.cpp - The content of a file -------------------------------===//

#include "base/ReadFile.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace shardc::rt;

absl::StatusOr<std::string>
shardc::rt::readFile(const std::string &path,
                     const std::function<void()> &onProgress) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  std::string bytes;
  constexpr size_t piece = size_t(1) << 20;
  ssize_t count;
  int error;
  do {
    size_t size = bytes.size();
    bytes.resize(size + piece);
    count = read(file, &bytes[size], piece);
    error = errno;
    bytes.resize(size + (count > 0 ? count : 0));
    if (onProgress)
      onProgress();
  } while (count > 0);
  close(file);
  if (count < 0)
    return absl::DataLossError(
        absl::StrCat(path, ": cannot read: ", std::strerror(error)));
  return bytes;
}
