//===- ReadableFile.cpp - A file that is read in ranges -------------------===//

#include "base/ReadableFile.h"

#include "base/ReadFile.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardc::rt;

absl::StatusOr<ReadableFile> ReadableFile::open(const std::string &path) {
  absl::StatusOr<int> file = openRegularFile(path);
  if (!file.ok())
    return file.status();
  struct stat status;
  if (fstat(*file, &status) != 0) {
    close(*file);
    return absl::DataLossError(
        absl::StrCat(path, ": cannot read: ", std::strerror(errno)));
  }
  return ReadableFile(path, status.st_size, *file);
}

ReadableFile::~ReadableFile() {
  if (file >= 0)
    close(file);
}

absl::Status ReadableFile::read(uint64_t at, void *out, uint64_t count) const {
  // No call for no bytes.
  return count == 0 ? absl::OkStatus() : readTo(at, {{out, count}});
}

absl::Status ReadableFile::readTo(uint64_t at, std::vector<iovec> parts) const {
  for (size_t next = 0; next < parts.size();) {
    // Linux reads at most 2 GiB at a time, and stops behind them.
    ssize_t done = preadv(file, &parts[next],
                          std::min<size_t>(parts.size() - next, IOV_MAX), at);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0) {
      uint64_t missing = 0;
      for (; next < parts.size(); ++next)
        missing += parts[next].iov_len;
      return absl::DataLossError(absl::StrCat(
          ownPath, ": cannot read ", missing, " bytes at ", at, ": ",
          done < 0 ? std::strerror(errno) : "the file ends before"));
    }
    at += done;
    for (; next < parts.size() && size_t(done) >= parts[next].iov_len; ++next)
      done -= parts[next].iov_len;
    if (next < parts.size()) {
      parts[next].iov_base = static_cast<char *>(parts[next].iov_base) + done;
      parts[next].iov_len -= done;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadableFile::readUpTo(uint64_t at,
                                                   uint64_t count) const {
  std::string bytes(at < size ? std::min(count, size - at) : 0, '\0');
  absl::Status status = read(at, &bytes[0], bytes.size());
  return status.ok() ? absl::StatusOr<std::string>(std::move(bytes)) : status;
}
