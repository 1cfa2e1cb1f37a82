//===- fail-writes.cpp - Faults at each write of a checkpoint -------------===//
//
// A library to preload. It counts the calls that change files or folders whose
// path has "/step-" in it, as those of checkpoints have: making, writing,
// reserving, flushing, closing, renaming, removing.
//
//   FAIL_AT=N         the number of the call that has the fault, from 1
//   FAIL_CALLS=M      so many calls from there on have it; by default one
//   FAIL_PATH=TEXT    calls with TEXT in their path, those that open a file to
//                     read included, in place of those with "/step-"
//   FAIL_BY=kill      SIGKILL; a write first writes half of its bytes
//   FAIL_BY=stop      SIGSTOP
//   FAIL_BY=hang      the call takes a day
//   FAIL_BY=slow      the call takes 100 ms longer
//   FAIL_BY=full      the error ENOSPC, of a full disk
//   FAIL_BY=readonly  the error EROFS, of a file system that is read-only
//   FAIL_BY=io        the error EIO
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace {
/// What happens to a call.
enum class Fault { None, Kill, Stop, Hang, Slow, Full, ReadOnly, Io };

std::string textOf(const char *variable, const char *standard) {
  const char *text = std::getenv(variable);
  return text ? text : standard;
}

long numberOf(const char *variable, const char *standard) {
  return std::stol(textOf(variable, standard));
}

Fault faultOf(const std::string &name) {
  constexpr std::pair<const char *, Fault> faults[] = {
      {"stop", Fault::Stop}, {"hang", Fault::Hang},
      {"slow", Fault::Slow}, {"full", Fault::Full},
      {"io", Fault::Io},     {"readonly", Fault::ReadOnly}};
  for (auto [known, fault] : faults)
    if (name == known)
      return fault;
  return Fault::Kill;
}

/// Counts a call.
Fault count() {
  static std::atomic<long> calls{0};
  static const long at = numberOf("FAIL_AT", "0");
  static const long number = numberOf("FAIL_CALLS", "1");
  long call = ++calls;
  if (call < at || call >= at + number)
    return Fault::None;
  return faultOf(textOf("FAIL_BY", "kill"));
}

/// Whether the call fails; ends the process if it is killed.
bool fails(Fault fault) {
  switch (fault) {
  case Fault::None:
    return false;
  case Fault::Kill:
    kill(getpid(), SIGKILL);
    return true;
  case Fault::Stop:
    kill(getpid(), SIGSTOP);
    return false;
  case Fault::Hang:
    sleep(24 * 3600);
    return false;
  case Fault::Slow:
    usleep(100000);
    return false;
  case Fault::Full:
    errno = ENOSPC;
    return true;
  case Fault::ReadOnly:
    errno = EROFS;
    return true;
  case Fault::Io:
    errno = EIO;
    return true;
  }
  return false;
}

bool isWatched(const char *path) {
  static const std::string text = textOf("FAIL_PATH", "/step-");
  return std::strstr(path, text.c_str());
}

bool isWatched(int file) {
  std::string link = "/proc/self/fd/" + std::to_string(file);
  char path[4096] = "";
  return readlink(link.c_str(), path, sizeof(path) - 1) > 0 && isWatched(path);
}

/// The function of this name behind this library.
template <typename Function>
Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}
} // namespace

extern "C" {
int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  bool isCounted = (flags & O_CREAT) || std::getenv("FAIL_PATH");
  if (isCounted && isWatched(path) && fails(count()))
    return -1;
  return next<int(const char *, int, ...)>("open")(path, flags, mode);
}

int mkdir(const char *path, mode_t mode) noexcept {
  if (isWatched(path) && fails(count()))
    return -1;
  return next<int(const char *, mode_t)>("mkdir")(path, mode);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t at) {
  auto *write = next<ssize_t(int, const void *, size_t, off_t)>("pwrite");
  if (isWatched(file)) {
    Fault fault = count();
    if (fault == Fault::Kill && write(file, data, bytes / 2, at) < 0)
      return -1;
    if (fails(fault))
      return -1;
  }
  return write(file, data, bytes, at);
}

int fallocate(int file, int mode, off_t at, off_t bytes) {
  if (isWatched(file) && fails(count()))
    return -1;
  return next<int(int, int, off_t, off_t)>("fallocate")(file, mode, at, bytes);
}

int fsync(int file) {
  if (isWatched(file) && fails(count()))
    return -1;
  return next<int(int)>("fsync")(file);
}

int close(int file) {
  auto *close = next<int(int)>("close");
  bool isFailing = isWatched(file) && fails(count());
  int result = close(file);
  return isFailing ? -1 : result;
}

int rename(const char *from, const char *to) noexcept {
  if (isWatched(to) && fails(count()))
    return -1;
  return next<int(const char *, const char *)>("rename")(from, to);
}

int renameat2(int fromFolder, const char *from, int toFolder, const char *to,
              unsigned flags) noexcept {
  if (isWatched(to) && fails(count()))
    return -1;
  return next<int(int, const char *, int, const char *, unsigned)>("renameat2")(
      fromFolder, from, toFolder, to, flags);
}

int unlink(const char *path) noexcept {
  if (isWatched(path) && fails(count()))
    return -1;
  return next<int(const char *)>("unlink")(path);
}

int unlinkat(int folder, const char *path, int flags) noexcept {
  if ((isWatched(path) || isWatched(folder)) && fails(count()))
    return -1;
  return next<int(int, const char *, int)>("unlinkat")(folder, path, flags);
}
}
