//===- ScheduleText.cpp - Schedules of pipelines as text ------------------===//

#include "shardc/PipelineSchedules/ScheduleText.h"

#include "shardc/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"

using namespace shardc;

/// Reads "2F0"; false if `cell` is no task.
bool shardc::readPipelineTask(llvm::StringRef cell, PipelineTask &task) {
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

/// `cell` for an error: printable, and no longer than a line.
static std::string quote(llvm::StringRef cell) {
  constexpr size_t most = 40;
  return "'" + makePrintable(cell.take_front(most).str()) +
         (cell.size() > most ? "…'" : "'");
}

namespace {

/// Reads one text. The numbers pass `checkPipelineSize`.
class ScheduleReader {
public:
  ScheduleReader(llvm::StringRef text, llvm::StringRef file, int64_t ranks,
                 int64_t chunks, int64_t microbatches)
      : text(text.rtrim("\r\n")), file(makePrintable(file.str())), ranks(ranks),
        stages(ranks * chunks) {
    schedule.microbatches = static_cast<int>(microbatches);
    schedule.rankOfStage.assign(stages, -1);
  }

  llvm::Expected<PipelineSchedule> read() {
    do {
      auto [line, rest] = text.split('\n');
      if (llvm::Error error = readRow(line))
        return error;
      text = rest;
    } while (!text.empty());
    if (schedule.getNumRanks() < ranks)
      return fail("expected a row for each of the " + llvm::Twine(ranks) +
                  " ranks of the pipeline, found " +
                  llvm::Twine(schedule.getNumRanks()));
    for (auto [stage, rank] : llvm::enumerate(schedule.rankOfStage))
      if (rank < 0)
        return fail("stage " + llvm::Twine(stage) + " has no task");
    if (llvm::Error error = checkPipelineSchedule(schedule))
      return fail(llvm::toString(std::move(error)));
    return std::move(schedule);
  }

private:
  llvm::Error fail(const llvm::Twine &message) const {
    return llvm::createStringError(file + ": " + message);
  }

  /// An error at `position` of `line`, which is that of the last rank.
  llvm::Error fail(llvm::StringRef line, const char *position,
                   const llvm::Twine &message) const {
    return llvm::createStringError(
        file + ":" + llvm::Twine(schedule.getNumRanks()) + ":" +
        llvm::Twine(position - line.begin() + 1) + ": " + message);
  }

  llvm::Error readRow(llvm::StringRef line) {
    int rank = schedule.getNumRanks();
    std::vector<PipelineTask> &tasks = schedule.ranks.emplace_back();
    if (rank >= ranks)
      return fail(line, line.begin(),
                  "a row too many: the pipeline has " + llvm::Twine(ranks) +
                      " ranks");
    for (llvm::StringRef cell : llvm::split(line, ',')) {
      cell = cell.trim();
      if (cell.empty())
        continue;
      PipelineTask task;
      if (!readPipelineTask(cell, task))
        return fail(line, cell.begin(),
                    "expected a task such as 0F0 (stage, one of F, B, I and W, "
                    "microbatch), found " +
                        quote(cell));
      if (task.stage >= stages || task.microbatch >= schedule.microbatches)
        return fail(line, cell.begin(),
                    quote(cell) + ": there are stages 0 to " +
                        llvm::Twine(stages - 1) + " and microbatches 0 to " +
                        llvm::Twine(schedule.microbatches - 1));
      int &known = schedule.rankOfStage[task.stage];
      if (known >= 0 && known != rank)
        return fail(line, cell.begin(),
                    quote(cell) + ": stage " + llvm::Twine(task.stage) +
                        " is on row " + llvm::Twine(known + 1));
      known = rank;
      tasks.push_back(task);
    }
    return llvm::Error::success();
  }

  /// What is not read yet.
  llvm::StringRef text;
  std::string file;
  int64_t ranks, stages;
  PipelineSchedule schedule;
};

} // namespace

llvm::Expected<PipelineSchedule>
shardc::readPipelineSchedule(llvm::StringRef text, llvm::StringRef file,
                             int64_t ranks, int64_t chunks,
                             int64_t microbatches) {
  if (llvm::Error error = checkPipelineSize(ranks, chunks, microbatches))
    return error;
  return ScheduleReader(text, file, ranks, chunks, microbatches).read();
}

bool shardc::isScheduleText(llvm::StringRef schedule) {
  return schedule.contains('\n');
}

llvm::Expected<PipelineSchedule>
shardc::getPipelineSchedule(llvm::StringRef schedule, llvm::StringRef file,
                            int64_t ranks, int64_t chunks,
                            int64_t microbatches) {
  return isScheduleText(schedule)
             ? readPipelineSchedule(schedule, file, ranks, chunks, microbatches)
             : makePipelineSchedule(schedule, ranks, chunks, microbatches);
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
