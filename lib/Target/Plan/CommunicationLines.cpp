//===- CommunicationLines.cpp - The lines of communication reports --------===//

#include "CommunicationLines.h"

#include <map>
#include <optional>
#include <tuple>

using namespace shardc;
namespace fb = shardc::rt::fb;

namespace {

/// The place of a collective among those of its task.
struct TaskPlace {
  uint32_t task;
  size_t ordinal;
};

} // namespace

/// The stage and the kind of a task: those of all microbatches are alike.
static std::pair<uint16_t, fb::TaskKind> getKey(const fb::Program &program,
                                                uint32_t task) {
  const fb::Task *table = program.tasks()->Get(task);
  return {table->stage(), table->kind()};
}

/// By entry of `Program.collectives` its place, if it belongs to a task. A send
/// starts right behind the task that makes what it sends.
static std::vector<std::optional<TaskPlace>>
findPlaces(const fb::Program &program) {
  std::vector<std::optional<TaskPlace>> places(program.collectives()->size());
  size_t numTasks = program.tasks() ? program.tasks()->size() : 0;
  std::vector<size_t> counts(numTasks);
  int32_t last = -1;
  auto place = [&](uint32_t report, int32_t task) {
    if (report < places.size() && task >= 0 &&
        static_cast<size_t>(task) < numTasks)
      places[report] = {static_cast<uint32_t>(task), counts[task]++};
  };
  if (program.commands())
    for (const fb::Command *command : *program.commands()) {
      if (const auto *start = command->operation_as_CollectiveStart())
        place(start->report(), command->task());
      else if (const auto *send = command->operation_as_Send())
        place(send->report(), last);
      else if (command->task() >= 0 &&
               command->operation_type() != fb::Operation::CollectiveWait)
        last = command->task();
    }
  // Behind the last task there are also sends of what is computed from the sums
  // of all microbatches. A task has as many as in other microbatches; with one
  // microbatch alone all count as its own.
  std::map<std::pair<uint16_t, fb::TaskKind>, size_t> least;
  for (uint32_t task = 0; task < numTasks; ++task) {
    auto [it, isNew] = least.try_emplace(getKey(program, task), counts[task]);
    it->second = std::min(it->second, counts[task]);
  }
  for (std::optional<TaskPlace> &each : places)
    if (each && each->ordinal >= least[getKey(program, each->task)])
      each.reset();
  return places;
}

CommunicationLines shardc::getCommunicationLines(const fb::Program &program) {
  CommunicationLines result;
  if (!program.collectives())
    return result;
  using Key = std::tuple<std::pair<uint16_t, fb::TaskKind>, size_t,
                         fb::CollectiveKind, uint64_t>;
  std::map<Key, size_t> known;
  std::vector<std::optional<TaskPlace>> places = findPlaces(program);
  for (size_t i = 0; i < places.size(); ++i) {
    const fb::CollectiveReport *entry = program.collectives()->Get(i);
    size_t number = result.lines.size();
    const fb::Task *task = nullptr;
    if (places[i]) {
      task = program.tasks()->Get(places[i]->task);
      Key key{getKey(program, places[i]->task), places[i]->ordinal,
              entry->kind(), entry->bytes()};
      number = known.try_emplace(key, number).first->second;
    }
    if (number == result.lines.size())
      result.lines.push_back({entry, task});
    CommunicationLine &line = result.lines[number];
    line.runs += entry->runs();
    line.wireBytes += entry->wire_bytes();
    line.seconds += entry->seconds();
    result.lineOf.push_back(number);
  }
  return result;
}
