//===- ReadFile.h - The content of a file -----------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_READFILE_H
#define SHARDC_RT_SRC_BASE_READFILE_H

#include "absl/status/statusor.h"

#include <functional>
#include <string>

namespace shardc::rt {

/// The descriptor of a file that ends: NotFound if it cannot be opened,
/// InvalidArgument if it is a device, a pipe or a folder. Errors begin with the
/// path.
[[nodiscard]] absl::StatusOr<int> openRegularFile(const std::string &path);

/// All bytes of a regular file. Errors are those of `openRegularFile`, and
/// DataLoss if it cannot be read. `onProgress` is called for each MiB, if there
/// is one.
[[nodiscard]] absl::StatusOr<std::string>
readFile(const std::string &path, const std::function<void()> &onProgress = {});

/// The same of a file that may be a pipe, which is read until it is closed.
[[nodiscard]] absl::StatusOr<std::string> readStream(const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_READFILE_H
