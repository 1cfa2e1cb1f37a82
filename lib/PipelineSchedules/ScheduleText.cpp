//===- ScheduleText.cpp - Schedules of pipelines as text ------------------===//

#include "shardc/PipelineSchedules/ScheduleText.h"

#include "llvm/ADT/StringExtras.h"

using namespace shardc;

/// Reads "2F0"; false if `cell` is no task.
static bool readTask(llvm::StringRef cell, PipelineTask &task) {
  unsigned stage, microbatch;
  if (cell.consumeInteger(10, stage) || cell.empty() || stage > 1u << 30)
    return false;
  switch (cell.front()) {
  case 'F':
    task.kind = TaskKind::Forward;
    break;
  case 'B':
    task.kind = TaskKind::Backward;
    break;
  case 'I':
    task.kind = TaskKind::InputGradient;
    break;
  case 'W':
    task.kind = TaskKind::WeightGradient;
    break;
  default:
    return false;
  }
  if (cell.drop_front().getAsInteger(10, microbatch) || microbatch > 1u << 30)
    return false;
  task.stage = static_cast<int>(stage);
  task.microbatch = static_cast<int>(microbatch);
  return true;
}

llvm::Expected<PipelineSchedule>
shardc::readPipelineSchedule(llvm::StringRef text, int64_t ranks,
                             int64_t stages, int64_t microbatches) {
  PipelineSchedule schedule;
  schedule.microbatches = static_cast<int>(microbatches);
  schedule.rankOfStage.assign(stages, -1);
  llvm::SmallVector<llvm::StringRef> lines;
  text.rtrim("\r\n").split(lines, '\n');
  for (auto [row, line] : llvm::enumerate(lines)) {
    auto fail = [&](const char *position, const llvm::Twine &message) {
      return llvm::createStringError(llvm::Twine(row + 1) + ":" +
                                     llvm::Twine(position - line.begin() + 1) +
                                     ": " + message);
    };
    if (static_cast<int64_t>(row) >= ranks)
      return fail(line.begin(), "a row too many: the pipeline has " +
                                    llvm::Twine(ranks) + " ranks");
    std::vector<PipelineTask> &tasks = schedule.ranks.emplace_back();
    for (llvm::StringRef cell : llvm::split(line, ',')) {
      cell = cell.trim();
      if (cell.empty())
        continue;
      PipelineTask task;
      if (!readTask(cell, task))
        return fail(cell.begin(),
                    "expected a task such as 0F0 (stage, one of F, B, I and W, "
                    "microbatch), found '" +
                        cell + "'");
      if (task.stage >= stages || task.microbatch >= microbatches)
        return fail(cell.begin(), "'" + cell + "': there are stages 0 to " +
                                      llvm::Twine(stages - 1) +
                                      " and microbatches 0 to " +
                                      llvm::Twine(microbatches - 1));
      int &rank = schedule.rankOfStage[task.stage];
      if (rank >= 0 && rank != static_cast<int>(row))
        return fail(cell.begin(), "'" + cell + "': stage " +
                                      llvm::Twine(task.stage) + " is on row " +
                                      llvm::Twine(rank + 1));
      rank = static_cast<int>(row);
      tasks.push_back(task);
    }
  }
  if (static_cast<int64_t>(schedule.ranks.size()) < ranks)
    return llvm::createStringError(
        "expected a row for each of the " + llvm::Twine(ranks) +
        " ranks of the pipeline, found " + llvm::Twine(schedule.ranks.size()));
  for (auto [stage, rank] : llvm::enumerate(schedule.rankOfStage))
    if (rank < 0)
      return llvm::createStringError("stage " + llvm::Twine(stage) +
                                     " has no task");
  if (llvm::Error error = checkPipelineSchedule(schedule))
    return error;
  return schedule;
}

std::string shardc::printPipelineSchedule(const PipelineSchedule &schedule) {
  std::string text;
  for (const std::vector<PipelineTask> &tasks : schedule.ranks) {
    llvm::interleave(
        tasks, [&](const PipelineTask &task) { text += toString(task); },
        [&] { text += ','; });
    text += '\n';
  }
  return text;
}
