//===- ReadableFile.h - A file that is read in ranges -----------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_READABLEFILE_H
#define SHARDC_RT_SRC_BASE_READABLEFILE_H

#include "absl/status/statusor.h"

#include <cstdint>
#include <string>
#include <sys/uio.h>
#include <utility>
#include <vector>

namespace shardc::rt {

/// A regular file of which any range of bytes can be read. A file that becomes
/// shorter in the meantime is an error; were it mapped, it would end the
/// process (SIGBUS). Moves; threads may share a constant one.
class ReadableFile {
public:
  /// NotFound: it cannot be opened. InvalidArgument: it is not a regular file.
  /// Errors begin with the path.
  [[nodiscard]] static absl::StatusOr<ReadableFile>
  open(const std::string &path);

  ReadableFile(ReadableFile &&other) noexcept
      : ownPath(std::move(other.ownPath)), size(other.size),
        file(std::exchange(other.file, -1)) {}
  ReadableFile &operator=(ReadableFile &&) = delete;
  ~ReadableFile();

  const std::string &path() const { return ownPath; }
  /// When it was opened.
  uint64_t bytes() const { return size; }

  /// Reads `count` bytes from `at` on. DataLoss: it ends before them, or they
  /// cannot be read.
  [[nodiscard]] absl::Status read(uint64_t at, void *out, uint64_t count) const;

  /// Reads the bytes from `at` on into `parts`, one behind the other.
  [[nodiscard]] absl::Status readTo(uint64_t at,
                                    std::vector<iovec> parts) const;

  /// The bytes in [at, at + count), or fewer where the file ends.
  [[nodiscard]] absl::StatusOr<std::string> readUpTo(uint64_t at,
                                                     uint64_t count) const;

private:
  ReadableFile(std::string path, uint64_t size, int file)
      : ownPath(std::move(path)), size(size), file(file) {}

  std::string ownPath;
  uint64_t size;
  int file; ///< A descriptor; negative: moved away.
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_READABLEFILE_H
