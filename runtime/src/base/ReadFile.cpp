//===- ReadFile.cpp - The content of a file -------------------------------===//

#include "base/ReadFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardc::rt;

static absl::StatusOr<int> openForReading(const std::string &path, int flags) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (file < 0)
    return absl::NotFoundError(
        absl::StrCat(path, ": cannot open: ", std::strerror(errno)));
  return file;
}

absl::StatusOr<int> shardc::rt::openRegularFile(const std::string &path) {
  // Opening a pipe would wait for its writer.
  absl::StatusOr<int> file = openForReading(path, O_NONBLOCK);
  if (!file.ok())
    return file;
  struct stat status;
  if (fstat(*file, &status) == 0 && S_ISREG(status.st_mode))
    return file;
  close(*file);
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": it is not a regular file"));
}

/// Reads `file`, if it could be opened, to its end, and closes it.
static absl::StatusOr<std::string>
readToEnd(const std::string &path, absl::StatusOr<int> file,
          const std::function<void()> &onProgress) {
  if (!file.ok())
    return file.status();
  std::string bytes;
  // Most files are small, and some are read for every pool of workers.
  size_t piece = 4096;
  ssize_t count;
  int error;
  do {
    size_t size = bytes.size();
    bytes.resize(size + piece);
    count = read(*file, &bytes[size], piece);
    error = errno;
    bytes.resize(size + (count > 0 ? count : 0));
    piece = std::max(piece, std::min(bytes.size(), size_t(1) << 20));
    if (onProgress)
      onProgress();
  } while (count > 0);
  close(*file);
  if (count < 0)
    return absl::DataLossError(
        absl::StrCat(path, ": cannot read: ", std::strerror(error)));
  return bytes;
}

absl::StatusOr<std::string>
shardc::rt::readFile(const std::string &path,
                     const std::function<void()> &onProgress) {
  return readToEnd(path, openRegularFile(path), onProgress);
}

absl::StatusOr<std::string> shardc::rt::readStream(const std::string &path) {
  return readToEnd(path, openForReading(path, /*flags=*/0), {});
}
