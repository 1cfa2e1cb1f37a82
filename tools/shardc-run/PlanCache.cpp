//===- PlanCache.cpp - The cache of compiled plans ------------------------===//
//
// A file is a header, the key, the diagnostics of the compiler, and the plan.
// Its name is a hash of the key; a match is decided by the key itself.
//
//===----------------------------------------------------------------------===//

#include "PlanCache.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace shardc::run;

namespace {

struct Header {
  char magic[8];
  uint64_t keyBytes, diagnosticsBytes, planBytes;
  uint64_t checksum; ///< Of everything behind the header.
};

/// A descriptor that is closed.
struct File {
  int descriptor;
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0)
      close(descriptor);
  }
};

} // namespace

static constexpr char magic[8] = {'S', 'H', 'R', 'D', 'P', 'C', '1', '\n'};
static constexpr char suffix[] = ".plan";
/// Files that a process which ended early left behind.
static constexpr char unfinished[] = ".unfinished";
static constexpr time_t unfinishedSeconds = 3600;

/// FNV-1a 64 of `bytes`, continued from `hash`.
static uint64_t hashBytes(absl::string_view bytes,
                          uint64_t hash = 0xcbf29ce484222325u) {
  for (char c : bytes)
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

static std::string nameOf(const std::string &key) {
  return absl::StrCat(absl::Hex(hashBytes(key), absl::kZeroPad16), suffix);
}

static absl::Status failure(absl::string_view what) {
  return absl::ErrnoToStatus(errno, what);
}

/// Whether only this user can have written it.
static bool isOwn(const struct stat &status) {
  return status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

static absl::Status makeFolders(const std::string &path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    std::string prefix = path.substr(0, end);
    if (mkdir(prefix.c_str(), 0700) != 0 && errno != EEXIST)
      return failure(absl::StrCat("cannot make ", prefix));
    if (end == std::string::npos)
      return absl::OkStatus();
  }
}

absl::StatusOr<std::unique_ptr<PlanCache>>
PlanCache::open(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    if (absl::Status made = makeFolders(path); !made.ok())
      return made;
  int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return failure(absl::StrCat("cannot open ", path));
  std::unique_ptr<PlanCache> cache(new PlanCache(path, folder));
  if (fstat(folder, &status) != 0)
    return failure(absl::StrCat("cannot look at ", path));
  if (!isOwn(status))
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     status.st_uid == geteuid() ? " can be written by others"
                                                : " belongs to another user",
                     ", and plans hold machine code"));
  return cache;
}

PlanCache::PlanCache(std::string path, int folder)
    : path(std::move(path)), folder(folder) {}

PlanCache::~PlanCache() { close(folder); }

std::string PlanCache::pathOf(const std::string &key) const {
  return absl::StrCat(path, "/", nameOf(key));
}

static absl::StatusOr<std::string> readAll(int file, uint64_t size) {
  std::string bytes(size, '\0');
  for (size_t done = 0; done < size;) {
    ssize_t count = read(file, &bytes[done], size - done);
    if (count <= 0)
      return absl::DataLossError("it cannot be read");
    done += count;
  }
  return bytes;
}

absl::StatusOr<PlanCache::Entry> PlanCache::find(const std::string &key) const {
  File file(openat(folder, nameOf(key).c_str(),
                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.descriptor < 0)
    return errno == ENOENT ? absl::NotFoundError("no such plan")
                           : absl::DataLossError(std::strerror(errno));
  struct stat status;
  if (fstat(file.descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      !isOwn(status))
    return absl::DataLossError("others can have written it");
  absl::StatusOr<std::string> bytes = readAll(file.descriptor, status.st_size);
  if (!bytes.ok())
    return bytes.status();
  Header header;
  if (bytes->size() < sizeof(header))
    return absl::DataLossError("it is truncated");
  std::memcpy(&header, bytes->data(), sizeof(header));
  absl::string_view rest = absl::string_view(*bytes).substr(sizeof(header));
  if (std::memcmp(header.magic, magic, sizeof(magic)) != 0)
    return absl::DataLossError("it does not start as one");
  if (header.keyBytes > rest.size() ||
      header.diagnosticsBytes > rest.size() - header.keyBytes ||
      header.planBytes !=
          rest.size() - header.keyBytes - header.diagnosticsBytes)
    return absl::DataLossError("it is truncated");
  if (hashBytes(rest) != header.checksum)
    return absl::DataLossError("its content does not match its checksum");
  if (rest.substr(0, header.keyBytes) != key)
    return absl::NotFoundError("the plan of another key");
  // A use: the least recently used go first.
  futimens(file.descriptor, nullptr);
  rest.remove_prefix(header.keyBytes);
  return Entry{std::string(rest.substr(0, header.diagnosticsBytes)),
               std::string(rest.substr(header.diagnosticsBytes))};
}

absl::Status PlanCache::store(const std::string &key, const Entry &entry) {
  Header header;
  std::memcpy(header.magic, magic, sizeof(magic));
  header.keyBytes = key.size();
  header.diagnosticsBytes = entry.diagnostics.size();
  header.planBytes = entry.plan.size();
  header.checksum =
      hashBytes(entry.plan, hashBytes(entry.diagnostics, hashBytes(key)));
  std::string bytes = absl::StrCat(
      absl::string_view(reinterpret_cast<char *>(&header), sizeof(header)), key,
      entry.diagnostics, entry.plan);
  if (bytes.size() > maxBytes)
    return absl::OkStatus();

  std::string name = nameOf(key);
  std::string temporary = absl::StrCat(name, ".", getpid(), unfinished);
  unlinkat(folder, temporary.c_str(), 0);
  {
    File file(openat(folder, temporary.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.descriptor < 0)
      return failure(absl::StrCat("cannot write in ", path));
    for (size_t done = 0; done < bytes.size();) {
      ssize_t count = write(file.descriptor, &bytes[done], bytes.size() - done);
      if (count < 0) {
        absl::Status status = failure(absl::StrCat("cannot write in ", path));
        unlinkat(folder, temporary.c_str(), 0);
        return status;
      }
      done += count;
    }
  }
  if (renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    absl::Status status = failure(absl::StrCat("cannot write in ", path));
    unlinkat(folder, temporary.c_str(), 0);
    return status;
  }
  trim();
  return absl::OkStatus();
}

void PlanCache::trim() const {
  struct Found {
    timespec used;
    uint64_t bytes;
    std::string name;
  };
  std::vector<Found> plans;
  uint64_t total = 0;
  DIR *listing = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY));
  if (!listing)
    return;
  while (dirent *item = readdir(listing)) {
    absl::string_view name = item->d_name;
    struct stat status;
    if (fstatat(folder, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (absl::EndsWith(name, unfinished) &&
        status.st_mtime < time(nullptr) - unfinishedSeconds)
      unlinkat(folder, item->d_name, 0);
    // Only files whose names nameOf can have made.
    if (name.size() != 16 + sizeof(suffix) - 1 || !absl::EndsWith(name, suffix))
      continue;
    total += status.st_size;
    plans.push_back(
        {status.st_mtim, uint64_t(status.st_size), std::string(name)});
  }
  closedir(listing);
  std::sort(plans.begin(), plans.end(), [](const Found &a, const Found &b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) <
           std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
  });
  for (const Found &plan : plans) {
    if (total <= maxBytes)
      return;
    unlinkat(folder, plan.name.c_str(), 0);
    total -= plan.bytes;
  }
}
