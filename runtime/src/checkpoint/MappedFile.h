//===- MappedFile.h - A file in memory --------------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_MAPPEDFILE_H
#define SHARDC_RT_SRC_CHECKPOINT_MAPPEDFILE_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstddef>
#include <string>

namespace shardc::rt {

/// The bytes of a regular file, mapped for reading: the system reads those that
/// are touched. A file that another program makes shorter in the meantime ends
/// the process (SIGBUS). Moves; threads may share a constant one.
class MappedFile {
public:
  /// NotFound: it cannot be opened. InvalidArgument: it is not a regular file,
  /// or cannot be mapped. Errors begin with the path.
  [[nodiscard]] static absl::StatusOr<MappedFile> open(const std::string &path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// Borrowed from this object.
  absl::string_view bytes() const { return {data, size}; }

private:
  MappedFile(const char *data, size_t size) : data(data), size(size) {}

  const char *data;
  size_t size;
};

/// Has the system begin to read bytes of a mapped file.
void readAhead(absl::string_view mapped);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_MAPPEDFILE_H
