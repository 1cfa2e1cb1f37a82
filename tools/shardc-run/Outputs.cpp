//===- Outputs.cpp - Files that a run writes ------------------------------===//

#include "Outputs.h"

#include "LoadData.h"
#include "Report.h"

#include "base/Convert.h"
#include "base/ReadFile.h"
#include "shardc-rt/Store.h"
#include "shardc/Support/InputFiles.h"
#include "shardc/Support/OutputFiles.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <tuple>
#include <unistd.h>
#include <vector>

using namespace shardc;
using namespace shardc::run;
using namespace shardc::rt;

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// The input files of a run with these arguments.
static std::vector<NamedFile> findInputs(const Arguments &arguments) {
  std::vector<NamedFile> inputs = {{"the model", arguments.input},
                                   {"--machine", arguments.isGiven("machine")
                                                     ? arguments.compile.machine
                                                     : ""},
                                   {"--load-params", arguments.loadParams}};
  if (isScheduleFile(arguments.compile.pipelineSchedule))
    inputs.push_back(
        {"--pipeline-schedule", arguments.compile.pipelineSchedule});
  for (const std::string &path : dataFiles(arguments.data))
    inputs.push_back({"--data", path});
  for (const std::string &path : dataFiles(arguments.evalData))
    inputs.push_back({"--eval-data", path});
  return inputs;
}

/// The reason why no file can be made in a folder; empty: it can.
static std::string whyNotIn(const std::string &folder) {
  std::string path = absl::StrCat(folder, "/.shardc-XXXXXX");
  int file = mkstemp(&path[0]);
  if (file < 0)
    return std::strerror(errno);
  close(file);
  unlink(path.c_str());
  return "";
}

/// The reason why `path` cannot be written; empty: none is known. With
/// `isReplaced` a new file takes its place.
static std::string whyNotWritable(const std::string &path, bool isReplaced) {
  struct stat status;
  bool exists = stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT)
    return std::strerror(errno);
  if (exists && S_ISDIR(status.st_mode))
    return "it is a folder";
  if (exists && isReplaced && !S_ISREG(status.st_mode))
    return "it is not a regular file";
  if (exists && !isReplaced)
    return access(path.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
  return whyNotIn(folderOf(path));
}

int shardc::run::checkOutputs(const Arguments &arguments) {
  std::vector<NamedFile> inputs = findInputs(arguments);
  std::vector<NamedFile> outputs;
  for (auto [flag, path] :
       {std::tuple("--save-params", &arguments.saveParams),
        std::tuple("--metrics", &arguments.metrics),
        std::tuple("--trace", &arguments.trace),
        std::tuple("--predict", &arguments.predict),
        std::tuple("--measure-machine", &arguments.measureMachine),
        std::tuple("--tune-gemms", &arguments.tuneGemms)})
    outputs.push_back({absl::StrCat(flag, "=", *path), *path});
  if (std::string error = checkOutputFiles(inputs, outputs); !error.empty())
    return report(1, error);
  for (const NamedFile &output : outputs) {
    if (output.path.empty())
      continue;
    bool isReplaced = output.path != arguments.metrics;
    if (std::string why = whyNotWritable(output.path, isReplaced); !why.empty())
      return report(1, absl::StrCat(output.name, ": cannot write: ", why));
  }
  return 0;
}

/// Checks that `folder` has room for `bytes` of `what`, which `flag` asks for.
static int checkRoomFor(uint64_t bytes, const std::string &folder,
                        const std::string &flag, const std::string &what) {
  struct statvfs status;
  // Some file systems do not tell.
  if (statvfs(folder.c_str(), &status) != 0 || status.f_blocks == 0)
    return 0;
  uint64_t room = uint64_t(status.f_bavail) * status.f_frsize;
  if (room >= bytes)
    return 0;
  return report(1, absl::StrCat(flag, ": ", what, " take ", bytes,
                                " bytes, and there is room for ", room));
}

int shardc::run::checkRoom(const Arguments &arguments, const Plan &plan) {
  uint64_t parameters = 0, states = 0;
  for (const TensorInfo &tensor : plan.tensors()) {
    uint64_t bytes = numElements(tensor.shape) * byteSize(tensor.dtype);
    parameters += tensor.role == Role::Parameter ? bytes : 0;
    states += tensor.role == Role::State ? bytes : 0;
  }
  int code = 0;
  if (!arguments.saveParams.empty())
    code = checkRoomFor(parameters, folderOf(arguments.saveParams),
                        absl::StrCat("--save-params=", arguments.saveParams),
                        "the parameters");
  if (code == 0 && !arguments.checkpointDir.empty() && arguments.isTraining())
    code =
        checkRoomFor(parameters + states, arguments.checkpointDir,
                     absl::StrCat("--checkpoint-dir=", arguments.checkpointDir),
                     "the parameters and optimizer states of a checkpoint");
  return code;
}

/// Names of new files in place of `path`: beside it, then in $TMPDIR.
static std::vector<std::string> otherPlaces(const std::string &path) {
  std::string name = path.substr(path.rfind('/') + 1);
  size_t dot = std::min(name.rfind('.'), name.size());
  name.insert(dot, absl::StrCat(".", getpid()));
  const char *chosen = std::getenv("TMPDIR");
  std::vector<std::string> places;
  for (const std::string &folder :
       {folderOf(path), std::string(chosen && *chosen ? chosen : "/tmp")}) {
    std::string place =
        absl::StrCat(folder, folder.back() == '/' ? "" : "/", name);
    if (place.substr(0, 2) == "./" && path.substr(0, 2) != "./")
      place.erase(0, 2);
    if (access(place.c_str(), F_OK) != 0)
      places.push_back(place);
  }
  return places;
}

int shardc::run::saveParameters(const Executor &executor,
                                const std::string &path,
                                const std::function<void()> &onProgress) {
  absl::Status first = rt::saveParameters(executor, path, onProgress);
  if (first.ok())
    return 0;
  auto isOfProcesses = [](const absl::Status &status) {
    return absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  };
  if (isOfProcesses(first))
    return report(first);
  Store *store = executor.store();
  auto say = [&](const std::string &message) {
    return !store || store->ranks().rank == 0 ? report(1, message) : 0;
  };
  std::string places = absl::StrJoin(otherPlaces(path), "\n");
  if (store) {
    absl::StatusOr<std::string> told = store->broadcast(
        "looking for another place", places, store->options().deadline);
    if (!told.ok())
      return report(told.status());
    places = *std::move(told);
  }
  for (const std::string &place : std::vector<std::string>(
           absl::StrSplit(places, '\n', absl::SkipEmpty()))) {
    absl::Status saved = rt::saveParameters(executor, place, onProgress);
    if (isOfProcesses(saved))
      return report(saved);
    if (saved.ok())
      return say(
          absl::StrCat(first.message(), "; the parameters are in ", place));
  }
  return say(absl::StrCat(first.message(),
                          "; nor beside it, nor in $TMPDIR: the parameters are "
                          "lost"));
}

int shardc::run::savePredictions(const ArrayMap &predictions,
                                 const std::string &path) {
  absl::Status first = writeArrays(path, predictions);
  if (first.ok())
    return 0;
  for (const std::string &place : otherPlaces(path))
    if (writeArrays(place, predictions).ok())
      return report(
          1, absl::StrCat(first.message(), "; the predictions are in ", place));
  return report(1, absl::StrCat(first.message(),
                                "; nor beside it, nor in $TMPDIR: the "
                                "predictions are lost"));
}

Metrics::~Metrics() {
  if (file >= 0)
    close(file);
}

/// The bytes of the lines of steps up to `last` at the beginning of `text`.
/// InvalidArgument: a line that is none of a step, but for a last one that is
/// cut off.
static absl::StatusOr<size_t> findLines(absl::string_view text, int64_t last) {
  size_t kept = 0, number = 1;
  for (;; ++number) {
    size_t end = text.find('\n', kept);
    if (end == text.npos)
      return kept;
    nlohmann::json line = nlohmann::json::parse(
        text.begin() + kept, text.begin() + end, nullptr, false);
    auto step = line.is_object() ? line.find("step") : line.end();
    if (!line.is_object() || step == line.end() || !step->is_number_integer())
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, " is not that of a step"));
    if (*step->get_ptr<const int64_t *>() > last)
      return kept;
    kept = end + 1;
  }
}

int Metrics::open(const std::string &newPath, int64_t stepsBefore) {
  path = newPath;
  size_t kept = 0;
  struct stat status;
  // A pipe or a device has no lines to keep.
  if (stepsBefore > 0 && stat(path.c_str(), &status) == 0 &&
      S_ISREG(status.st_mode)) {
    absl::StatusOr<std::string> text = readFile(path);
    absl::StatusOr<size_t> lines =
        text.ok() ? findLines(*text, stepsBefore) : text.status();
    if (!lines.ok())
      return report(1, absl::StrCat("--metrics=", path, ": cannot go on: ",
                                    lines.status().message()));
    kept = *lines;
  }
  file = ::open(path.c_str(),
                O_WRONLY | O_CREAT | O_CLOEXEC | (kept ? 0 : O_TRUNC), 0666);
  if (file < 0 || (kept > 0 && (ftruncate(file, kept) != 0 ||
                                lseek(file, 0, SEEK_END) < 0)))
    return report(1, absl::StrCat("--metrics=", path,
                                  ": cannot write: ", std::strerror(errno)));
  bytes = kept;
  return 0;
}

/// Appends all of `line` to the open file or, if that is a regular file,
/// nothing.
bool Metrics::append(const std::string &line) {
  for (size_t done = 0; done < line.size();) {
    ssize_t count = write(file, &line[done], line.size() - done);
    if (count < 0) {
      int error = errno;
      if (done > 0 && ftruncate(file, bytes) == 0)
        lseek(file, bytes, SEEK_SET);
      errno = error;
      return false;
    }
    done += count;
  }
  bytes += line.size();
  return true;
}

/// The other scalars that a step of the user's own returns, such as accuracy.
static void addMetrics(nlohmann::ordered_json &json, const RunResult &result) {
  for (const auto &[name, array] : result.results)
    if (array.shape.empty() && name != "loss")
      if (absl::StatusOr<HostArray> value = convert(array, DType::F64);
          value.ok())
        json[name] = value->values<double>()[0];
}

void Metrics::add(const StepRecord &record, const RunResult &result) {
  if (file < 0)
    return;
  nlohmann::ordered_json json;
  json["step"] = record.step;
  json["epoch"] = record.epoch;
  json["loss"] = result.loss; // null if not finite
  addMetrics(json, result);
  json["step_time_ms"] = result.seconds * 1e3;
  json["samples_per_s"] = record.samplesPerSecond;
  json["communication_share"] = result.communicationSeconds / result.seconds;
  json["wire_bytes"] = result.wireBytes;
  std::string line = json.dump() + "\n";
  if (append(line))
    return;
  code = 1;
  std::string error =
      absl::StrCat(path, ": cannot write: ", std::strerror(errno));
  close(file);
  bytes = 0;
  for (const std::string &place : otherPlaces(path)) {
    file = ::open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
      continue;
    if (append(line)) {
      path = place;
      report(1, absl::StrCat(error, "; the metrics from step ", record.step,
                             " on are in ", place));
      return;
    }
    close(file);
    unlink(place.c_str());
  }
  file = -1;
  report(1, absl::StrCat(error,
                         "; nor beside it, nor in $TMPDIR: the metrics "
                         "from step ",
                         record.step, " on are lost"));
}
