//===- Files.cpp - Files that survive a crash -----------------------------===//

#include "checkpoint/Files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardc::rt;

static absl::Status fault(const std::string &path, absl::string_view action,
                          int error) {
  std::string text =
      absl::StrCat(path, ": cannot ", action, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT || error == EFBIG
             ? absl::ResourceExhaustedError(text)
             : absl::InvalidArgumentError(text);
}

std::string shardc::rt::parentFolderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

absl::StatusOr<WritableFile>
WritableFile::openWith(const std::string &path, int flags, const char *action) {
  // A file that is to be mapped has to be readable, too.
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0666);
  return file < 0 ? absl::StatusOr<WritableFile>(fault(path, action, errno))
                  : WritableFile(path, file);
}

absl::StatusOr<WritableFile> WritableFile::make(const std::string &path) {
  return openWith(path, O_CREAT | O_EXCL, "make");
}

absl::StatusOr<WritableFile> WritableFile::open(const std::string &path) {
  return openWith(path, 0, "open");
}

WritableFile::~WritableFile() {
  unmap();
  if (file >= 0)
    ::close(file);
}

/// So much at least, since each begin takes time.
static constexpr uint64_t beginBytes = uint64_t(1) << 23;

absl::Status WritableFile::mapFirst(uint64_t bytes) {
  // A page without a place on a full disk would end the process (SIGBUS).
  int error = EINTR;
  while (error == EINTR)
    error = fallocate(file, 0, 0, bytes) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP || error == ENOSYS)
    return absl::OkStatus();
  if (error != 0)
    return fault(path, "write", error);
  shared = bytes;
  return absl::OkStatus();
}

void WritableFile::unmap() {
  if (window)
    munmap(std::exchange(window, nullptr), windowBytes);
}

/// Maps the part around a byte, in place of the one before; false: the file
/// system cannot.
bool WritableFile::moveWindow(uint64_t at) {
  constexpr uint64_t most = uint64_t(1) << 26;
  if (window && at - windowBegin < windowBytes)
    return true;
  unmap();
  windowBegin = at / most * most;
  windowBytes = std::min(most, shared - windowBegin);
  void *mapped = mmap(nullptr, windowBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      file, windowBegin);
  window = mapped == MAP_FAILED ? nullptr : static_cast<char *>(mapped);
  if (progress)
    progress();
  return window;
}

absl::Status WritableFile::write(uint64_t at, absl::string_view bytes) {
  while (!bytes.empty() && at < shared) {
    if (!moveWindow(at)) {
      shared = 0;
      break;
    }
    uint64_t count =
        std::min<uint64_t>(bytes.size(), windowBegin + windowBytes - at);
    std::memcpy(window + (at - windowBegin), bytes.data(), count);
    bytes.remove_prefix(count);
    at += count;
    end = std::max(end, at);
  }
  while (!bytes.empty()) {
    ssize_t count =
        pwrite(file, bytes.data(), std::min(bytes.size(), beginBytes), at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return fault(path, "write", errno);
    bytes.remove_prefix(count);
    at += count;
    end = std::max(end, at);
    if (end - begun >= beginBytes) {
      // Errors are those of the flush.
      sync_file_range(file, begun, end - begun, SYNC_FILE_RANGE_WRITE);
      begun = end;
    }
    if (progress)
      progress();
  }
  return absl::OkStatus();
}

/// Piece by piece, so that there is progress to tell of.
absl::Status WritableFile::flush() {
  unmap();
  constexpr uint64_t pieceBytes = uint64_t(1) << 26;
  constexpr unsigned writesAndWaits = SYNC_FILE_RANGE_WAIT_BEFORE |
                                      SYNC_FILE_RANGE_WRITE |
                                      SYNC_FILE_RANGE_WAIT_AFTER;
  for (uint64_t at = 0; progress && at < end && end > pieceBytes;
       at += pieceBytes) {
    // Some file systems cannot. An error of the disk is told only once.
    if (sync_file_range(file, at, pieceBytes, writesAndWaits) != 0 &&
        (errno == EIO || errno == ENOSPC || errno == EDQUOT))
      return fault(path, "flush", errno);
    progress();
  }
  return fsync(file) == 0 ? absl::OkStatus() : fault(path, "flush", errno);
}

absl::Status WritableFile::close() {
  absl::Status status = flush();
  if (::close(std::exchange(file, -1)) != 0 && status.ok())
    status = fault(path, "close", errno);
  return status;
}

absl::Status
shardc::rt::writeFile(const std::string &path,
                      const std::vector<absl::string_view> &pieces) {
  absl::StatusOr<WritableFile> file = WritableFile::make(path);
  if (!file.ok())
    return file.status();
  absl::Status status;
  uint64_t at = 0;
  for (absl::string_view piece : pieces) {
    if (status.ok())
      status = file->write(at, piece);
    at += piece.size();
  }
  if (status.ok())
    status = file->close();
  if (!status.ok())
    unlink(path.c_str());
  return status;
}

absl::Status
shardc::rt::replaceFile(const std::string &path,
                        absl::FunctionRef<absl::Status(WritableFile &)> write) {
  std::string other = absl::StrCat(path, ".tmp.", getpid());
  if (absl::Status status = removeAll(other); !status.ok())
    return status;
  absl::StatusOr<WritableFile> file = WritableFile::make(other);
  if (!file.ok())
    return underItsName(file.status(), other, path);
  absl::Status status = write(*file);
  if (status.ok())
    status = file->close();
  if (status.ok())
    return renameFile(other, path);
  unlink(other.c_str());
  return underItsName(status, other, path);
}

absl::Status shardc::rt::underItsName(const absl::Status &status,
                                      const std::string &file,
                                      const std::string &path) {
  return status.ok()
             ? status
             : absl::Status(status.code(), absl::StrReplaceAll(status.message(),
                                                               {{file, path}}));
}

absl::Status shardc::rt::renameFile(const std::string &file,
                                    const std::string &path) {
  if (rename(file.c_str(), path.c_str()) != 0) {
    absl::Status status = fault(path, "replace", errno);
    unlink(file.c_str());
    return status;
  }
  return syncFolder(parentFolderOf(path));
}

absl::Status shardc::rt::makeFolder(const std::string &path) {
  return mkdir(path.c_str(), 0777) == 0 ? absl::OkStatus()
                                        : fault(path, "make", errno);
}

absl::Status shardc::rt::syncFolder(const std::string &path) {
  int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return fault(path, "open", errno);
  absl::Status status;
  // Some file systems cannot, and need not.
  if (fsync(folder) != 0 && errno != EINVAL)
    status = fault(path, "flush", errno);
  close(folder);
  return status;
}

absl::Status shardc::rt::publishFolder(const std::string &folder,
                                       const std::string &path) {
  if (rename(folder.c_str(), path.c_str()) != 0) {
    if (errno != ENOTEMPTY && errno != EEXIST)
      return fault(path, "rename to", errno);
    std::string old = absl::StrCat(folder, "-old");
    if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, path.c_str(),
                  RENAME_EXCHANGE) == 0)
      old = folder;
    else if (rename(path.c_str(), old.c_str()) != 0 ||
             rename(folder.c_str(), path.c_str()) != 0)
      return fault(path, "rename to", errno);
    absl::Status status = syncFolder(parentFolderOf(path));
    return status.ok() ? removeAll(old) : status;
  }
  return syncFolder(parentFolderOf(path));
}

absl::Status shardc::rt::removeAll(const std::string &path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? fault(path, "remove", error.value()) : absl::OkStatus();
}
