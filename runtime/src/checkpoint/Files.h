//===- Files.h - Files that survive a crash ---------------------*- C++ -*-===//
//
// Every function returns when the bytes are on the disk (fsync) and can be
// called from any thread. Errors begin with the path and name the system's
// reason: ResourceExhausted for a full disk, a quota or the limit of a file's
// size, else InvalidArgument.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_FILES_H
#define SHARDC_RT_SRC_CHECKPOINT_FILES_H

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <string>
#include <vector>

namespace shardc::rt {

/// Makes a file, which must not exist, of `pieces`, one behind the other. If
/// that fails there is none.
[[nodiscard]] absl::Status
writeFile(const std::string &path,
          const std::vector<absl::string_view> &pieces);

/// Makes or replaces a file in one step: after a crash it has the bytes of
/// before or of after.
[[nodiscard]] absl::Status
replaceFile(const std::string &path,
            const std::vector<absl::string_view> &pieces);

/// Makes a folder, which must not exist.
[[nodiscard]] absl::Status makeFolder(const std::string &path);

/// Writes the entries of a folder to the disk.
[[nodiscard]] absl::Status syncFolder(const std::string &path);

/// Gives a folder, whose files are on the disk, its name. One that has the name
/// is replaced in one step where the file system can do so.
[[nodiscard]] absl::Status publishFolder(const std::string &folder,
                                         const std::string &path);

/// Removes a folder with all of its content, or a file. An absent one is no
/// error.
[[nodiscard]] absl::Status removeAll(const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_CHECKPOINT_FILES_H
