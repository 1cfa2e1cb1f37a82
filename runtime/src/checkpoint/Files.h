//===- Files.h - Files that survive a crash ---------------------*- C++ -*-===//
//
// Every function returns when the bytes are on the disk (fsync) and can be
// called from any thread; of a WritableFile that is `close`. Errors begin with
// the path and name the system's reason: ResourceExhausted for a full disk, a
// quota or the limit of a file's size, else InvalidArgument.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_CHECKPOINT_FILES_H
#define SHARDC_RT_SRC_CHECKPOINT_FILES_H

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace shardc::rt {

/// A file to write at any place. Several processes may write different bytes of
/// one.
class WritableFile {
public:
  /// Makes a file, which must not exist.
  [[nodiscard]] static absl::StatusOr<WritableFile>
  make(const std::string &path);
  /// Opens one that exists.
  [[nodiscard]] static absl::StatusOr<WritableFile>
  open(const std::string &path);

  WritableFile(WritableFile &&other) noexcept
      : path(std::move(other.path)), file(std::exchange(other.file, -1)),
        begun(other.begun), end(other.end), shared(other.shared),
        window(std::exchange(other.window, nullptr)),
        windowBegin(other.windowBegin), windowBytes(other.windowBytes),
        progress(std::move(other.progress)) {}
  WritableFile &operator=(WritableFile &&) = delete;
  ~WritableFile();

  /// Called each time that a piece of some MiB has been written or flushed.
  void onProgress(std::function<void()> function) {
    progress = std::move(function);
  }

  /// Makes the file at least `bytes` long, whose place on the disk is reserved,
  /// and small writes to them fast: they go to the pages that the system keeps
  /// of the file. For several writers, that is right only where all of them
  /// have the same pages. A file system that cannot do this writes as before.
  [[nodiscard]] absl::Status mapFirst(uint64_t bytes);

  /// The disk begins to write what is some MiB, so that `close` waits for less.
  [[nodiscard]] absl::Status write(uint64_t at, absl::string_view bytes);
  /// Flushes and closes it. No other call follows.
  [[nodiscard]] absl::Status close();

private:
  WritableFile(std::string path, int file)
      : path(std::move(path)), file(file) {}
  static absl::StatusOr<WritableFile> openWith(const std::string &path,
                                               int flags, const char *action);

  absl::Status flush();
  bool moveWindow(uint64_t at);
  void unmap();

  std::string path;
  int file;               ///< A descriptor; negative: closed.
  uint64_t begun = 0;     ///< Behind what the disk has begun to write.
  uint64_t end = 0;       ///< Behind all that was written.
  uint64_t shared = 0;    ///< Bytes that may be mapped.
  char *window = nullptr; ///< The part that is; null: none.
  uint64_t windowBegin = 0, windowBytes = 0;
  std::function<void()> progress;
};

/// Makes a file, which must not exist, of `pieces`, one behind the other. If
/// that fails there is none.
[[nodiscard]] absl::Status
writeFile(const std::string &path,
          const std::vector<absl::string_view> &pieces);

/// Makes or replaces a file, which `write` writes, in one step: after a crash
/// it has the bytes of before or of after.
[[nodiscard]] absl::Status
replaceFile(const std::string &path,
            absl::FunctionRef<absl::Status(WritableFile &)> write);

/// The folder that a file is in.
std::string parentFolderOf(const std::string &path);

/// `status`, with `path` in place of `file`, the name that the file had while
/// it was written: people know it by its own.
absl::Status underItsName(const absl::Status &status, const std::string &file,
                          const std::string &path);

/// Gives a file that is on the disk its name, and replaces one that has it.
[[nodiscard]] absl::Status renameFile(const std::string &file,
                                      const std::string &path);

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
