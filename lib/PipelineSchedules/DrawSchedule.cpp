//===- DrawSchedule.cpp - Pictures of schedules ---------------------------===//

#include "shardc/PipelineSchedules/DrawSchedule.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>

using namespace shardc;

/// The letter and the microbatch.
static std::string getLabel(const PipelineTask &task) {
  std::string name = toString(task);
  return name.substr(name.find_first_not_of("0123456789"));
}

namespace {

/// Where times are in the picture.
class Columns {
public:
  Columns(const PipelineSchedule &schedule,
          const PipelineSimulation &simulation, size_t most);

  size_t at(double seconds) const {
    return static_cast<size_t>(std::llround(seconds * perSecond));
  }

private:
  double perSecond = 0;
};

} // namespace

/// As many columns as the shortest task needs for its label and a space, if
/// there are so many. Otherwise the shortest task has a whole number of them,
/// so that equal tasks are equally wide, or all columns are used.
Columns::Columns(const PipelineSchedule &schedule,
                 const PipelineSimulation &simulation, size_t most) {
  if (simulation.makespan <= 0)
    return;
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto &tasks : simulation.tasks)
    for (SimulatedTask task : tasks)
      if (task.end > task.start)
        shortest = std::min(shortest, task.end - task.start);
  double wanted =
      2 + static_cast<double>(std::to_string(schedule.microbatches - 1).size());
  // One part in a million is rounding.
  double share =
      static_cast<double>(most) * (1 + 1e-6) * shortest / simulation.makespan;
  double width = std::min(wanted, std::floor(share));
  perSecond = width >= 1 ? width / shortest
                         : static_cast<double>(most) / simulation.makespan;
}

/// `label` in `width` columns, with a space behind it if there is one left.
static std::string getBox(const std::string &label, size_t width) {
  if (width < label.size())
    return label.substr(0, 1) + std::string(width - 1, '-');
  std::string box = label;
  if (width > label.size())
    box += std::string(width - label.size() - 1, '-') + ' ';
  return box;
}

std::string shardc::drawSchedule(const PipelineSchedule &schedule,
                                 const PipelineSimulation &simulation,
                                 size_t columns) {
  Columns place(schedule, simulation, columns);
  bool namesStages =
      llvm::any_of(llvm::enumerate(schedule.rankOfStage), [](const auto &it) {
        return it.value() != static_cast<int>(it.index());
      });
  size_t rankWidth = std::to_string(schedule.getNumRanks() - 1).size();
  size_t stageWidth = std::to_string(schedule.getNumStages() - 1).size();
  auto getName = [](llvm::StringRef what, int number, size_t width) {
    std::string digits = std::to_string(number);
    return what.str() + std::string(width - digits.size(), ' ') + digits + "  ";
  };
  std::string text;
  for (int rank = 0; rank < schedule.getNumRanks(); ++rank) {
    std::string busy(place.at(simulation.makespan), '.');
    for (SimulatedTask task : simulation.tasks[rank])
      for (size_t i = place.at(task.start); i < place.at(task.end); ++i)
        busy[i] = ' ';
    std::string name = getName("rank ", rank, rankWidth);
    for (int stage = 0; stage < schedule.getNumStages(); ++stage) {
      if (schedule.rankOfStage[stage] != rank)
        continue;
      std::string line = busy;
      for (auto [task, time] :
           llvm::zip_equal(schedule.ranks[rank], simulation.tasks[rank])) {
        size_t begin = place.at(time.start), end = place.at(time.end);
        if (task.stage == stage && begin < end)
          line.replace(begin, end - begin, getBox(getLabel(task), end - begin));
      }
      if (namesStages)
        line = getName("stage ", stage, stageWidth) + line;
      text += llvm::StringRef(name + line).rtrim(' ').str() + "\n";
      name.assign(name.size(), ' ');
    }
  }
  return text;
}
