//===- CheckpointServer.cpp - Times checkpoints on request ----------------===//
//
// The process that benchmarks/goals asks for times of checkpoints and of what
// they are compared with. One request per line:
//
//   plan FILE DIR      loads a plan and runs a step; files go to DIR
//   copy state         a copy of as many bytes as a checkpoint has, in memory
//   stall state        what a step that starts a checkpoint waits for it
//   write state        a checkpoint, from its begin until it is on the disk
//   load cold|warm     the latest checkpoint, checksums included
//   stream state       the same bytes into one file in pieces, and fsync
//   read cold|warm     that file, piece by piece into the same memory
//   fetch cold|warm    that file, into memory of its size
//
// cold: the page cache does not have the files. Each is answered by one line, a
// JSON object: "seconds" of the one run ("steps" is 1), "bytes", and "error" if
// something failed.
//
//===----------------------------------------------------------------------===//

#include "PlanRunner.h"

#include "base/Memory.h"
#include "base/ReadableFile.h"
#include "checkpoint/Files.h"
#include "shardc-rt/Checkpoint.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace shardc::rt;
using namespace shardc::rt::bench;

namespace {

/// A piece that is read or written at once, as by dd bs=1M.
constexpr uint64_t pieceBytes = 1 << 20;

class Server {
public:
  explicit Server(Context &context) : context(context) {}

  nlohmann::json answer(const std::string &line);

private:
  absl::Status load(const std::string &path, const std::string &folder);
  absl::StatusOr<double> time(const std::string &verb, const std::string &how);
  absl::StatusOr<CheckpointResult> save(double &stall);
  absl::Status loadCheckpoint();
  absl::Status stream();
  absl::Status read(uint64_t step);
  std::vector<std::string> files() const;
  absl::Status cool() const;
  absl::Status warm() const;

  std::string streamPath() const { return folder + "/stream"; }

  Context &context;
  std::string folder;
  std::unique_ptr<PlanRunner> runner;
  std::unique_ptr<CheckpointWriter> writer;
  uint64_t bytes = 0; ///< Of parameters and states.
  int64_t saved = 0;  ///< The step of the latest checkpoint.
  std::optional<Memory> from, to;
};

} // namespace

/// Seconds that `call` takes.
template <typename Call>
static double secondsOf(Call call) {
  auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

static absl::Status systemError(const std::string &what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::Status Server::load(const std::string &path,
                          const std::string &newFolder) {
  writer.reset();
  runner.reset();
  folder = newFolder;
  auto made = PlanRunner::create(context, nullptr, path);
  if (!made.ok())
    return made.status();
  runner = *std::move(made);
  bytes = 0;
  for (const TensorInfo &tensor : runner->get().plan().tensors())
    if (tensor.role == Role::Parameter || tensor.role == Role::State)
      bytes += numElements(tensor.shape) * byteSize(tensor.dtype);
  for (std::optional<Memory> *memory : {&from, &to}) {
    memory->reset();
    Memory allocated;
    if (!allocated.allocate(bytes))
      return absl::ResourceExhaustedError("out of memory");
    allocated.touch(bytes);
    memory->emplace(std::move(allocated));
  }
  CheckpointOptions options;
  options.folder = folder + "/checkpoints";
  options.goesOn = true;
  auto opened = CheckpointWriter::open(options);
  if (!opened.ok())
    return opened.status();
  writer = *std::move(opened);
  return writer->reserve(runner->get().plan());
}

/// Removes the one before first, so that this is not a part of the time.
absl::StatusOr<CheckpointResult> Server::save(double &stall) {
  absl::Status status =
      removeAll(absl::StrCat(folder, "/checkpoints/step-", saved));
  if (!status.ok())
    return status;
  TrainProgress progress;
  progress.steps = ++saved;
  progress.rows = progress.batchSize = 1;
  stall = secondsOf([&] { status = writer->save(runner->get(), progress); });
  if (!status.ok())
    return status;
  writer->wait();
  CheckpointResult result = writer->takeResults().back();
  return result.status.ok() ? absl::StatusOr<CheckpointResult>(result)
                            : result.status;
}

absl::Status Server::loadCheckpoint() {
  return loadLatestCheckpoint(folder + "/checkpoints", runner->get()).status();
}

absl::Status Server::stream() {
  int file = open(streamPath().c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
  bool isFine = file >= 0;
  for (uint64_t at = 0; isFine && at < bytes; at += pieceBytes) {
    uint64_t count = std::min(pieceBytes, bytes - at);
    isFine = pwrite(file, from->get() + at, count, at) == ssize_t(count);
  }
  isFine = isFine && fsync(file) == 0;
  absl::Status status =
      isFine ? absl::OkStatus() : systemError("writing " + streamPath());
  close(file);
  return status;
}

/// Reads piece by piece, `step` bytes of memory further each time.
absl::Status Server::read(uint64_t step) {
  int file = open(streamPath().c_str(), O_RDONLY);
  ssize_t count = file >= 0 ? 1 : -1;
  char *place = to->get();
  for (uint64_t at = 0; count > 0 && at < bytes; at += count, place += step)
    count = pread(file, place, std::min(pieceBytes, bytes - at), at);
  absl::Status status =
      count > 0 ? absl::OkStatus() : systemError("reading " + streamPath());
  close(file);
  return status;
}

std::vector<std::string> Server::files() const {
  std::vector<std::string> paths;
  for (const auto &entry :
       std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      paths.push_back(entry.path().string());
  return paths;
}

/// Drops the pages of all files from the page cache.
absl::Status Server::cool() const {
  for (const std::string &path : files()) {
    int file = open(path.c_str(), O_RDONLY);
    int error =
        file < 0 ? errno : posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    close(file);
    if (error != 0)
      return absl::InternalError(
          absl::StrCat("cooling ", path, ": ", std::strerror(error)));
  }
  return absl::OkStatus();
}

/// Has the pages of all files in the page cache.
absl::Status Server::warm() const {
  std::vector<char> piece(pieceBytes);
  for (const std::string &path : files()) {
    absl::StatusOr<ReadableFile> file = ReadableFile::open(path);
    if (!file.ok())
      return file.status();
    for (uint64_t at = 0; at < file->bytes(); at += pieceBytes)
      if (absl::Status status = file->read(
              at, piece.data(), std::min(pieceBytes, file->bytes() - at));
          !status.ok())
        return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Server::time(const std::string &verb,
                                    const std::string &how) {
  if (!runner)
    return absl::FailedPreconditionError("no plan is loaded");
  if (verb == "stall" || verb == "write") {
    double stall = 0;
    absl::StatusOr<CheckpointResult> result = save(stall);
    if (!result.ok())
      return result.status();
    return verb == "stall" ? stall : result->seconds;
  }
  if (verb == "stream")
    if (absl::Status status = removeAll(streamPath()); !status.ok())
      return status;
  if (how == "cold")
    if (absl::Status status = cool(); !status.ok())
      return status;
  if (how == "warm")
    if (absl::Status status = warm(); !status.ok())
      return status;
  absl::Status status = absl::InvalidArgumentError("not understood");
  double seconds = secondsOf([&] {
    if (verb == "copy") {
      std::memcpy(to->get(), from->get(), bytes);
      status = absl::OkStatus();
    } else if (verb == "load") {
      status = loadCheckpoint();
    } else if (verb == "stream") {
      status = stream();
    } else if (verb == "read" || verb == "fetch") {
      status = read(verb == "read" ? 0 : pieceBytes);
    }
  });
  return status.ok() ? absl::StatusOr<double>(seconds) : status;
}

nlohmann::json Server::answer(const std::string &line) {
  std::vector<std::string> words = absl::StrSplit(line, ' ');
  absl::Status status = absl::InvalidArgumentError("not understood");
  if (words[0] == "plan" && words.size() == 3) {
    status = load(words[1], words[2]);
    if (status.ok())
      return {{"bytes", bytes}};
  } else if (words.size() == 2) {
    absl::StatusOr<double> seconds = time(words[0], words[1]);
    if (seconds.ok())
      return {{"seconds", *seconds}, {"steps", 1}, {"bytes", bytes}};
    status = seconds.status();
  }
  return {{"error", absl::StrCat(line, ": ", std::string(status.message()))}};
}

int main() {
  auto context = Context::create({});
  if (!context.ok()) {
    std::cerr << "shardc-bench-checkpoints: " << context.status().message()
              << "\n";
    return 70;
  }
  Server server(**context);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << server.answer(line).dump() << std::endl;
  return 0;
}
