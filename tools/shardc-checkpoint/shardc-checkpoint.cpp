//===- shardc-checkpoint.cpp - Looks into checkpoints ---------------------===//
//
//   shardc-checkpoint list|show|verify|export|diff DIR...
//
// docs/Checkpoints.md describes the commands. Exit codes are those of the
// other tools: 1 for usage, 2 for a damaged or missing checkpoint, 3 if two
// checkpoints differ.
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Compare.h"

#include "checkpoint/Manifest.h"
#include "shardc-rt/Checkpoint.h"
#include "shardc/Support/OutputFiles.h"
#include "train/Format.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

using namespace shardc::checkpoint;
using namespace shardc::rt;

using Json = nlohmann::ordered_json;

static int reportStatus(const absl::Status &status) {
  return report(2, std::string(status.message()));
}

/// Whether a path is a checkpoint, and not a folder of checkpoints.
static bool isCheckpoint(const std::string &path) {
  std::filesystem::path folder(path);
  if (folder.filename().empty())
    folder = folder.parent_path();
  std::error_code error;
  return absl::StartsWith(folder.filename().string(), "step-") ||
         std::filesystem::exists(folder / manifestName, error);
}

/// Opens a checkpoint, or the latest of a folder.
static absl::StatusOr<std::unique_ptr<Checkpoint>>
open(const std::string &path) {
  if (isCheckpoint(path))
    return Checkpoint::open(path);
  ReadCheckpointOptions options;
  options.onDamaged = [](const absl::Status &damage) {
    report(0, absl::StrCat(damage.message(),
                           "\nit is left out, and the one before is taken"));
  };
  return openLatestCheckpoint(path, options);
}

/// "2026-11-23 17:48:07 UTC".
static std::string toTime(int64_t seconds) {
  std::time_t time = seconds;
  std::tm parts = {};
  char text[64] = "";
  if (gmtime_r(&time, &parts))
    std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

static uint64_t bytesOf(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const ManifestFile &file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

static Json toJson(const Checkpoint &checkpoint) {
  const Manifest &manifest = checkpoint.manifest();
  const TrainProgress &progress = checkpoint.progress();
  Json json;
  json["path"] = checkpoint.path();
  json["step"] = progress.steps;
  json["epoch"] = progress.epoch();
  json["step_in_epoch"] = progress.stepInEpoch();
  json["loss"] = progress.finalLoss;
  json["model"] = manifest.model;
  json["fingerprint"] = checkpoint.fingerprint();
  json["mesh"] = manifest.mesh;
  json["seed"] = progress.seed;
  json["shuffle"] = progress.shuffle;
  json["rows"] = progress.rows;
  json["batch_size"] = progress.batchSize;
  json["written_at"] = manifest.writtenAt;
  json["bytes"] = bytesOf(manifest);
  return json;
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// Names of writes in a folder that have not ended.
static std::vector<std::string> findRemains(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    std::string name = entries->path().filename().string();
    if (absl::StartsWith(name, "step-") && absl::StrContains(name, ".tmp"))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

static int list(const Arguments &arguments) {
  const std::string &folder = arguments.folders[0];
  absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
  if (!names.ok())
    return reportStatus(names.status());
  if (names->empty() && shardc::isCheckpoint(folder))
    return report(1, folder + " is a checkpoint itself; expected the folder "
                              "that it is in, or show");
  int code = 0;
  Json json = Json::array();
  if (!arguments.json)
    std::cout << absl::StrFormat("%10s  %6s  %12s  %-23s  %s\n", "step",
                                 "epoch", "loss", "written", "size");
  for (auto name = names->rbegin(); name != names->rend(); ++name) {
    absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
        Checkpoint::open(name->path);
    absl::Status status =
        name->status.ok() ? checkpoint.status() : name->status;
    if (!status.ok()) {
      code = reportStatus(status);
      json.push_back({{"path", name->path},
                      {"step", name->step},
                      {"error", std::string(status.message())}});
      continue;
    }
    json.push_back(toJson(**checkpoint));
    const TrainProgress &progress = (*checkpoint)->progress();
    const Manifest &manifest = (*checkpoint)->manifest();
    if (!arguments.json)
      std::cout << absl::StrFormat(
          "%10d  %6d  %12.6g  %-23s  %s\n", progress.steps, progress.epoch(),
          progress.finalLoss, toTime(manifest.writtenAt),
          formatBytes(bytesOf(manifest)));
  }
  for (const std::string &name : findRemains(folder))
    if (!arguments.json)
      std::cout << name << ": a write that has not ended\n";
  if (arguments.json)
    std::cout << Json({{"checkpoints", json}}).dump(2) << "\n";
  return code;
}

static int show(const Arguments &arguments) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
      open(arguments.folders[0]);
  if (!checkpoint.ok())
    return reportStatus(checkpoint.status());
  const Manifest &manifest = (*checkpoint)->manifest();
  const TrainProgress &progress = manifest.progress;
  if (arguments.json) {
    Json json = toJson(**checkpoint);
    for (const ManifestTensor &tensor : manifest.tensors)
      json["tensors"].push_back(
          {{"name", tensor.type.name},
           {"role", std::string(toString(tensor.role))},
           {"dtype", std::string(toString(tensor.type.dtype))},
           {"shape", tensor.type.shape},
           {"file", tensor.file},
           {"shards", tensor.shards.size()}});
    std::cout << json.dump(2) << "\n";
    return 0;
  }
  printField("checkpoint",
             absl::StrCat((*checkpoint)->path(), ", written ",
                          toTime(manifest.writtenAt), ", ",
                          formatBytes(bytesOf(manifest))),
             std::cout);
  printField("model",
             absl::StrCat(manifest.model, ", fingerprint ",
                          (*checkpoint)->fingerprint(), ", written on mesh ",
                          manifest.mesh),
             std::cout);
  printField("progress",
             absl::StrFormat("%d steps, the next one in epoch %d after %d of "
                             "its %d; loss %.6g -> %.6g",
                             progress.steps, progress.epoch(),
                             progress.stepInEpoch(), progress.stepsPerEpoch(),
                             progress.firstLoss, progress.finalLoss),
             std::cout);
  printField("data",
             absl::StrCat(progress.rows, " rows in batches of ",
                          progress.batchSize, ", ",
                          progress.shuffle ? "shuffled" : "in their order",
                          ", seed ", progress.seed),
             std::cout);
  size_t longest = 4;
  for (const ManifestTensor &tensor : manifest.tensors)
    longest = std::max(longest, tensor.type.name.size());
  for (const ManifestTensor &tensor : manifest.tensors) {
    std::cout << absl::StrFormat(
        "%-*s  %-9s  %-16s  %s\n", static_cast<int>(longest), tensor.type.name,
        std::string(toString(tensor.role)),
        describe(tensor.type.dtype, tensor.type.shape), tensor.file);
    for (const ManifestShard &shard : tensor.shards)
      std::cout << absl::StrFormat("%*s  crc32 %08x  %s\n",
                                   static_cast<int>(longest), "",
                                   shard.checksum, shard.describe());
  }
  return 0;
}

/// Verifies one checkpoint; adds its result to `json`.
static int verify(const std::string &path, const Arguments &arguments,
                  Json &json) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
      Checkpoint::open(path);
  std::vector<std::string> faults;
  int64_t shards = 0;
  if (checkpoint.ok()) {
    faults = (*checkpoint)->verify();
    for (const ManifestTensor &tensor : (*checkpoint)->manifest().tensors)
      shards += tensor.shards.size();
  } else {
    faults.push_back(std::string(checkpoint.status().message()));
  }
  json.push_back({{"path", path}, {"faults", faults}});
  for (const std::string &fault : faults)
    report(2, fault);
  if (faults.empty() && !arguments.json)
    std::cout << path << ": all of its " << shards
              << " shards are as written\n";
  return faults.empty() ? 0 : 2;
}

static int verifyAll(const Arguments &arguments) {
  int code = 0;
  Json json = Json::array();
  for (const std::string &folder : arguments.folders) {
    if (isCheckpoint(folder)) {
      code = std::max(code, verify(folder, arguments, json));
      continue;
    }
    absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
    if (!names.ok())
      return reportStatus(names.status());
    if (names->empty())
      code = report(2, folder + ": there is no checkpoint");
    for (auto name = names->rbegin(); name != names->rend(); ++name)
      code = std::max(code, verify(name->path, arguments, json));
  }
  if (arguments.json)
    std::cout << Json({{"checkpoints", json}}).dump(2) << "\n";
  return code;
}

static int exportParameters(const Arguments &arguments) {
  const std::string &path = arguments.output;
  if (!absl::EndsWith(path, ".npz") && !isSafetensorsPath(path))
    return report(1, "-o " + path + ": expected a file .npz or .safetensors");
  if (std::string error =
          shardc::checkOutputFiles(/*inputs=*/{}, {{"-o " + path, path}});
      !error.empty())
    return report(1, error);
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
      open(arguments.folders[0]);
  if (!checkpoint.ok())
    return reportStatus(checkpoint.status());
  absl::StatusOr<ArrayMap> parameters = (*checkpoint)->readParameters();
  if (!parameters.ok())
    return reportStatus(parameters.status());
  if (absl::Status status = writeArrays(path, *parameters); !status.ok())
    return report(1, std::string(status.message()));
  std::cout << path << ": " << parameters->size() << " parameters of "
            << (*checkpoint)->path() << "\n";
  return 0;
}

static int diff(const Arguments &arguments) {
  std::unique_ptr<Checkpoint> both[2];
  for (int i : {0, 1}) {
    absl::StatusOr<std::unique_ptr<Checkpoint>> opened =
        open(arguments.folders[i]);
    if (!opened.ok())
      return reportStatus(opened.status());
    both[i] = *std::move(opened);
    int code = 0;
    for (const std::string &fault : both[i]->verify())
      code = report(2, fault);
    if (code)
      return code;
  }
  absl::StatusOr<bool> isSame = compare(*both[0], *both[1], std::cout);
  if (!isSame.ok())
    return reportStatus(isSame.status());
  if (!*isSame)
    return 3;
  std::cout << "the same progress, parameters and states\n";
  return 0;
}

static int run(const Arguments &arguments) {
  switch (arguments.verb) {
  case Verb::List:
    return list(arguments);
  case Verb::Show:
    return show(arguments);
  case Verb::Verify:
    return verifyAll(arguments);
  case Verb::Export:
    return exportParameters(arguments);
  case Verb::Diff:
    return diff(arguments);
  }
  return 0;
}

int main(int argc, char **argv) {
  // A file that grows beyond the limit of its size is an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
  int code = 0;
  if (std::optional<Arguments> arguments = parseArguments(argc, argv, code))
    code = run(*arguments);
  std::cout.flush();
  if (!std::cout)
    code = std::max(code, report(1, "cannot write standard output"));
  return code;
}
