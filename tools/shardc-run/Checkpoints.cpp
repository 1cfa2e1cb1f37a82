//===- Checkpoints.cpp - Checkpoints of a run -----------------------------===//

#include "Checkpoints.h"

#include "Report.h"

#include "shardc/Support/OutputFiles.h"

#include "train/Format.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

using namespace shardc::run;
using namespace shardc::rt;

/// The exit code of a run whose last checkpoint was written with this result.
static int exitCodeAfter(const absl::Status &status) {
  if (status.ok())
    return 0;
  if (absl::IsAborted(status) || absl::IsDeadlineExceeded(status))
    return 6;
  return absl::IsOutOfRange(status) ? 5 : 2;
}

/// The checkpoints in a folder: "step-40, step-80".
static std::string listSteps(const std::string &folder) {
  absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
  std::string text;
  if (names.ok())
    for (auto name = names->rbegin(); name != names->rend(); ++name)
      absl::StrAppend(&text, text.empty() ? "" : ", ", name->step);
  return text.empty() ? "none" : text;
}

int shardc::run::checkCheckpointDir(const Arguments &arguments) {
  const std::string &folder = arguments.checkpointDir;
  if (folder.empty())
    return 0;
  // Others inside of it would be removed with it.
  if (shardc::isCheckpoint(folder))
    return report(1, absl::StrCat("--checkpoint-dir=", folder,
                                  " is a checkpoint itself; expected the "
                                  "folder that it is in, and --resume"));
  if (!arguments.resume.empty())
    return 0;
  absl::StatusOr<std::vector<CheckpointName>> names = listCheckpoints(folder);
  if (!names.ok() || names->empty())
    return 0;
  return report(1, absl::StrCat("--checkpoint-dir=", folder,
                                ": it has checkpoints already, of steps ",
                                listSteps(folder),
                                "; expected --resume or --resume=if-any, or "
                                "another folder for a new training"));
}

int Checkpoints::find(const Arguments &arguments, std::ostream &out) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> found;
  int64_t step;
  if (absl::SimpleAtoi(arguments.resume, &step)) {
    found = Checkpoint::open(absl::StrCat(folder, "/step-", step));
    if (absl::IsNotFound(found.status()))
      return report(2, absl::StrCat("--resume=", step, ": ", folder,
                                    " has no such checkpoint; its steps: ",
                                    listSteps(folder)));
  } else {
    found = findLatestCheckpoint(folder, reading);
    if (absl::IsNotFound(found.status()) && !isOneDamaged &&
        arguments.resume == "if-any") {
      printField(
          "checkpoint",
          absl::StrCat("none in ", folder, " yet: the training begins anew"),
          out);
      return 0;
    }
    if (absl::IsNotFound(found.status()))
      return report(
          2, absl::StrCat("nothing to resume from: ", found.status().message(),
                          isOneDamaged ? ""
                                       : "; --resume=if-any begins anew then"));
  }
  if (!found.ok())
    return report(found.status());
  resumed = *std::move(found);
  return 0;
}

int Checkpoints::open(Arguments &arguments, const Plan &plan, Store *store,
                      const std::function<void()> &onProgress,
                      std::ostream &out) {
  if (arguments.checkpointDir.empty())
    return 0;
  folder = arguments.checkpointDir;
  everySteps = arguments.checkpointSteps;
  everySeconds = arguments.checkpointSeconds;
  // Locked first, so that nobody removes what is found.
  if (arguments.isTraining()) {
    CheckpointOptions options;
    options.folder = folder;
    options.keep = arguments.keep;
    options.store = store;
    options.deadline = arguments.deadline;
    options.onProgress = onProgress;
    options.goesOn = !arguments.resume.empty();
    absl::StatusOr<std::unique_ptr<CheckpointWriter>> opened =
        CheckpointWriter::open(options);
    if (absl::IsAborted(opened.status()) ||
        absl::IsDeadlineExceeded(opened.status()))
      return report(opened.status());
    if (!opened.ok())
      return report(
          1, absl::StrCat("--checkpoint-dir=", opened.status().message()));
    writer = *std::move(opened);
  }
  if (arguments.resume.empty())
    return 0;
  reading.store = store;
  reading.deadline = arguments.deadline;
  reading.onProgress = onProgress;
  reading.onDamaged = [this](const absl::Status &damage) {
    isOneDamaged = true;
    report(0, absl::StrCat(damage.message(),
                           "\nit is left out, and the one before is taken"));
  };
  if (int code = find(arguments, out))
    return code;
  return resumed ? take(arguments, plan) : 0;
}

int Checkpoints::take(Arguments &arguments, const Plan &plan) {
  if (absl::Status status = resumed->checkAgainst(plan); !status.ok())
    return report(status);
  from = resumed->progress();
  lastBegun = lastWritten = from.steps;
  lastPath = resumed->path();
  return arguments.isTraining() ? takeOrder(arguments, plan) : 0;
}

int Checkpoints::takeOrder(Arguments &arguments, const Plan &plan) const {
  auto differ = [&](absl::string_view what, auto there, auto here) {
    return report(2,
                  absl::StrCat(resumed->path(), " is of a training with ", what,
                               " ", there, ", not ", here,
                               ": it cannot go on in the order of its data"));
  };
  if (arguments.isSeedGiven && arguments.seed != from.seed)
    return differ("--seed", from.seed, arguments.seed);
  if (arguments.noShuffle && from.shuffle)
    return differ("data that is", "shuffled", "in its order (--no-shuffle)");
  if (from.batchSize != plan.batchSize())
    return differ("batches of", from.batchSize, plan.batchSize());
  arguments.seed = from.seed;
  arguments.noShuffle = !from.shuffle;
  return 0;
}

TrainProgress Checkpoints::start() const { return from; }

int Checkpoints::load(Arguments &arguments, Executor &executor,
                      std::ostream &out) {
  const Plan &plan = executor.plan();
  int64_t step;
  const bool isLatest = !absl::SimpleAtoi(arguments.resume, &step);
  for (;;) {
    absl::Status status = resumed->load(executor, reading);
    if (status.ok())
      break;
    if (!absl::IsDataLoss(status) || !isLatest)
      return report(status);
    reading.onDamaged(status);
    reading.leaveOut.push_back(resumed->path());
    // The executor has been made for the seed of that one.
    arguments.isSeedGiven = true;
    if (int code = find(arguments, out))
      return code;
    if (int code = take(arguments, plan))
      return code;
  }
  const bool isTraining = arguments.isTraining();
  const std::string &mesh = resumed->mesh();
  printField(
      "checkpoint",
      absl::StrCat(
          isTraining ? "goes on after step " : "that of step ", from.steps,
          isTraining ? " of " : ", ", resumed->path(),
          mesh == plan.mesh() ? "" : absl::StrCat(", written on mesh ", mesh)),
      out);
  return 0;
}

int Checkpoints::reserve(const Plan &plan) {
  lastSave = Clock::now();
  absl::Status status = writer ? writer->reserve(plan) : absl::OkStatus();
  return status.ok() ? 0 : report(status);
}

bool Checkpoints::isDueAfter(int64_t steps) const {
  return everySteps > 0 && steps % everySteps == 0;
}

bool Checkpoints::isDueByTime() const {
  return everySeconds > 0 &&
         std::chrono::duration<double>(Clock::now() - lastSave).count() >=
             everySeconds;
}

absl::Status Checkpoints::save(const Executor &executor,
                               const TrainProgress &progress) {
  lastSave = Clock::now();
  lastBegun = progress.steps;
  absl::Status status = writer->save(executor, progress);
  status.Update(takeResults());
  return status;
}

absl::Status Checkpoints::takeResults() {
  absl::Status lost;
  if (!writer)
    return lost;
  for (const CheckpointResult &result : writer->takeResults()) {
    if (trace)
      trace->add("checkpoint", absl::StrCat("write step ", result.step),
                 result.begin,
                 result.begin +
                     std::chrono::nanoseconds(int64_t(result.seconds * 1e9)));
    longestCopy = std::max(longestCopy, result.copySeconds);
    code = exitCodeAfter(result.status);
    if (code == 0) {
      ++written;
      lastWritten = result.step;
      lastPath = result.path;
      continue;
    }
    std::string text = absl::StrCat(
        "the checkpoint of step ", result.step,
        " is not written: ", result.status.message(),
        lastPath.empty() ? "; there is none yet"
                         : absl::StrCat("; the last one is ", lastPath));
    // The training cannot go on without the others.
    if (code == 6)
      lost.Update(absl::Status(result.status.code(), text));
    else
      report(code, text);
  }
  return lost;
}

absl::Status Checkpoints::wait() {
  if (!writer)
    return absl::OkStatus();
  writer->wait();
  return takeResults();
}

int Checkpoints::finish(const Executor &executor,
                        const TrainProgress &progress) {
  if (!writer)
    return 0;
  absl::Status status = wait();
  if (status.ok() && (lastBegun != progress.steps || code != 0)) {
    status = save(executor, progress);
    if (status.ok())
      status = wait();
  }
  return status.ok() ? code : report(status);
}
