//===- StreamEvents.cpp - Dependences between streams as events -----------===//
//
// Issues the commands in order, those of a loop twice: later runs have the
// dependences of the second one. Of each stream only the latest command that
// conflicts matters; earlier ones have ended by then.
//
//===----------------------------------------------------------------------===//

#include "shardc/Target/Plan/StreamEvents.h"

#include "llvm/ADT/STLExtras.h"

namespace shardc {

namespace {

/// One run of a command.
struct Issue {
  uint32_t command;
  /// By stream the number of issues known to have ended when this one has.
  std::vector<size_t> seen;
};

class EventFinder {
public:
  explicit EventFinder(llvm::ArrayRef<StreamCommand> commands)
      : commands(commands), events(commands.size()), latest(commands.size()) {
    for (const StreamCommand &command : commands)
      if (command.stream >= streams.size())
        streams.resize(command.stream + 1);
  }

  std::vector<std::vector<uint32_t>> find();

private:
  void issue(uint32_t number);

  llvm::ArrayRef<StreamCommand> commands;
  std::vector<std::vector<uint32_t>> events;
  /// By stream its issues so far.
  std::vector<std::vector<Issue>> streams;
  /// By command the number of issues of its stream up to its latest.
  std::vector<size_t> latest;
};

} // namespace

static bool overlap(llvm::ArrayRef<ByteRange> some,
                    llvm::ArrayRef<ByteRange> others) {
  for (ByteRange a : some)
    for (ByteRange b : others)
      if (a.begin < b.end && b.begin < a.end)
        return true;
  return false;
}

static bool conflict(const StreamCommand &a, const StreamCommand &b) {
  return overlap(a.writes, b.writes) || overlap(a.writes, b.reads) ||
         overlap(a.reads, b.writes);
}

void EventFinder::issue(uint32_t number) {
  const StreamCommand &command = commands[number];
  std::vector<Issue> &own = streams[command.stream];
  std::vector<size_t> seen(streams.size());
  auto waitFor = [&](const Issue &other) {
    for (size_t stream = 0; stream < seen.size(); ++stream)
      seen[stream] = std::max(seen[stream], other.seen[stream]);
  };
  if (!own.empty())
    waitFor(own.back());
  for (uint32_t other : events[number])
    if (latest[other] > 0)
      waitFor(streams[commands[other].stream][latest[other] - 1]);

  llvm::SmallVector<const Issue *> conflicts;
  for (size_t stream = 0; stream < streams.size(); ++stream)
    for (size_t i = streams[stream].size(); i > seen[stream]; --i)
      if (conflict(commands[streams[stream][i - 1].command], command)) {
        conflicts.push_back(&streams[stream][i - 1]);
        break;
      }
  // A command that has waited for another one makes that one superfluous.
  for (const Issue *other : conflicts) {
    unsigned stream = commands[other->command].stream;
    bool isImplied = llvm::any_of(conflicts, [&](const Issue *third) {
      return third != other && third->seen[stream] >= other->seen[stream];
    });
    if (!isImplied)
      events[number].push_back(other->command);
  }
  for (const Issue *other : conflicts)
    waitFor(*other);
  llvm::sort(events[number]);
  seen[command.stream] = latest[number] = own.size() + 1;
  own.push_back({number, std::move(seen)});
}

std::vector<std::vector<uint32_t>> EventFinder::find() {
  for (uint32_t number = 0; number < commands.size(); ++number) {
    issue(number);
    const StreamCommand &loop = commands[number];
    // The second run follows with the commands behind the loop.
    for (uint32_t i = 1; loop.runs > 1 && i <= loop.commands; ++i)
      issue(number + i);
  }
  return std::move(events);
}

std::vector<std::vector<uint32_t>>
findStreamEvents(llvm::ArrayRef<StreamCommand> commands) {
  return EventFinder(commands).find();
}

} // namespace shardc
