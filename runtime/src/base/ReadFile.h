//===- ReadFile.h - The content of a file -----------------------*- C++ -*-===//

#ifndef SHARDC_RT_SRC_BASE_READFILE_H
#define SHARDC_RT_SRC_BASE_READFILE_H

#include "absl/status/statusor.h"

#include <functional>
#include <string>

namespace shardc::rt {

/// All bytes of the file. NotFound if it cannot be opened, DataLoss if it
/// cannot be read; errors begin with the path. `onProgress` is called for each
/// MiB, if there is one.
[[nodiscard]] absl::StatusOr<std::string>
readFile(const std::string &path, const std::function<void()> &onProgress = {});

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_BASE_READFILE_H
