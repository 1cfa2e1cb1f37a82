//===- PipelineSchedule.cpp - The schedules that have names ---------------===//

#include "shardc/PipelineSchedules/PipelineSchedule.h"

#include "shardc/Support/Printable.h"
#include "shardc/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"

using namespace shardc;

static constexpr llvm::StringRef names[] = {"gpipe", "1f1b", "interleaved",
                                            "zero-bubble"};

llvm::ArrayRef<llvm::StringRef> shardc::getPipelineScheduleNames() {
  return names;
}

std::string shardc::toString(const PipelineTask &task) {
  static constexpr char letters[] = {'F', 'B', 'I', 'W'};
  return std::to_string(task.stage) + letters[static_cast<int>(task.kind)] +
         std::to_string(task.microbatch);
}

namespace {

/// Appends the tasks of one rank.
class RankTasks {
public:
  RankTasks(int stage, std::vector<PipelineTask> &tasks)
      : stage(stage), tasks(tasks) {}

  void add(TaskKind kind, int64_t microbatch) {
    tasks.push_back({kind, stage, static_cast<int>(microbatch)});
  }

private:
  int stage;
  std::vector<PipelineTask> &tasks;
};

} // namespace

static void addGPipe(int64_t microbatches, RankTasks tasks) {
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch)
    tasks.add(TaskKind::Forward, microbatch);
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch)
    tasks.add(TaskKind::Backward, microbatch);
}

/// As many forward tasks as it takes until the first backward task can run,
/// then one after each backward task. With `splits`, rank r delays gradients of
/// weights by r microbatches: it then has as many live ones as rank 0.
static void addOneForwardOneBackward(int64_t rank, int64_t ranks,
                                     int64_t microbatches, bool splits,
                                     RankTasks tasks) {
  int64_t next = std::min(microbatches, ranks - rank);
  for (int64_t microbatch = 0; microbatch < next; ++microbatch)
    tasks.add(TaskKind::Forward, microbatch);
  for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    tasks.add(splits ? TaskKind::InputGradient : TaskKind::Backward,
              microbatch);
    if (splits && microbatch >= rank)
      tasks.add(TaskKind::WeightGradient, microbatch - rank);
    if (next < microbatches)
      tasks.add(TaskKind::Forward, next++);
  }
  if (splits)
    for (int64_t microbatch = std::max<int64_t>(0, microbatches - rank);
         microbatch < microbatches; ++microbatch)
      tasks.add(TaskKind::WeightGradient, microbatch);
}

/// Rounds of `ranks` microbatches go through all chunks of a rank, one chunk
/// after the other: forward from the first chunk, backward from the last.
static void addInterleaved(int64_t rank, int64_t ranks, int64_t chunks,
                           int64_t microbatches,
                           std::vector<PipelineTask> &tasks) {
  auto add = [&](TaskKind kind, int64_t index) {
    int64_t round = index / (ranks * chunks);
    int64_t chunk = index / ranks % chunks;
    if (kind == TaskKind::Backward)
      chunk = chunks - 1 - chunk;
    tasks.push_back({kind, static_cast<int>(chunk * ranks + rank),
                     static_cast<int>(round * ranks + index % ranks)});
  };
  int64_t total = microbatches * chunks;
  int64_t next =
      std::min(total, 2 * (ranks - rank - 1) + (chunks - 1) * ranks + 1);
  for (int64_t index = 0; index < next; ++index)
    add(TaskKind::Forward, index);
  for (int64_t index = 0; index < total; ++index) {
    add(TaskKind::Backward, index);
    if (next < total)
      add(TaskKind::Forward, next++);
  }
}

llvm::Error shardc::checkPipelineSize(int64_t ranks, int64_t chunks,
                                      int64_t microbatches) {
  if (ranks < 1 || chunks < 1 || microbatches < 1)
    return llvm::createStringError(
        "a schedule needs at least one stage and one microbatch");
  if (ranks > maxPipelineTasks || chunks > maxPipelineTasks / ranks ||
      microbatches > maxPipelineTasks / ranks / chunks / 3)
    return llvm::createStringError(
        "a schedule of " + std::to_string(microbatches) + " microbatches on " +
        std::to_string(ranks) + " ranks with " + std::to_string(chunks) +
        " stages each has more than " + std::to_string(maxPipelineTasks) +
        " tasks");
  return llvm::Error::success();
}

/// Checks that the numbers suit the schedule `name`.
static llvm::Error checkNumbers(llvm::StringRef name, int64_t ranks,
                                int64_t chunks, int64_t microbatches) {
  if (!llvm::is_contained(names, name)) {
    std::vector<std::string> known;
    for (llvm::StringRef each : names)
      known.push_back(each.str());
    return llvm::createStringError("unknown schedule '" +
                                   makePrintable(name.str()) + "'" +
                                   suggest(name.str(), known));
  }
  if (llvm::Error error = checkPipelineSize(ranks, chunks, microbatches))
    return error;
  if (name == "interleaved" && microbatches % ranks != 0)
    return llvm::createStringError(
        "schedule 'interleaved' needs a number of microbatches that the " +
        std::to_string(ranks) + " ranks of the pipeline divide, found " +
        std::to_string(microbatches));
  if (name != "interleaved" && chunks > 1)
    return llvm::createStringError(
        "schedule '" + name.str() + "' has one stage per rank, found " +
        std::to_string(chunks) +
        "; several need 'interleaved' or a schedule from a file");
  return llvm::Error::success();
}

llvm::Expected<PipelineSchedule>
shardc::makePipelineSchedule(llvm::StringRef name, int64_t ranks,
                             int64_t chunks, int64_t microbatches) {
  if (llvm::Error error = checkNumbers(name, ranks, chunks, microbatches))
    return error;
  PipelineSchedule schedule;
  schedule.ranks.resize(ranks);
  schedule.microbatches = static_cast<int>(microbatches);
  for (int64_t stage = 0; stage < ranks * chunks; ++stage)
    schedule.rankOfStage.push_back(static_cast<int>(stage % ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<PipelineTask> &tasks = schedule.ranks[rank];
    RankTasks ofStage(static_cast<int>(rank), tasks);
    if (name == "gpipe")
      addGPipe(microbatches, ofStage);
    else if (name == "interleaved" && chunks > 1)
      addInterleaved(rank, ranks, chunks, microbatches, tasks);
    else
      addOneForwardOneBackward(rank, ranks, microbatches, name == "zero-bubble",
                               ofStage);
  }
  return schedule;
}
