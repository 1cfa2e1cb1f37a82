//===- CheckCollectives.cpp - What happens while collectives are under way ===//
//
// Follows the commands in order, those of a loop's body once, with the regions
// of all runs. The cost is that of comparing the regions of each command with
// those of the collectives under way at that point.
//
//===----------------------------------------------------------------------===//

#include "plan/ReadPlan.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include <algorithm>

using namespace shardc::rt;

namespace {

/// Bytes of the arena.
struct Region {
  uint64_t begin, end;
};

/// What one command reads and writes, in all runs.
struct Accesses {
  std::vector<Region> reads, writes;
};

struct UnderWay {
  uint32_t start;
  Accesses accesses;
};

class Follower {
public:
  explicit Follower(const ProgramSpec &program) : program(program) {}

  absl::Status run();

private:
  template <typename... Args>
  absl::Status bad(const Args &...args) const {
    return absl::DataLossError(absl::StrCat(
        "program \"", program.name, "\", command ", number, ": ", args...));
  }

  Region regionOf(uint32_t buffer) const;
  Accesses accessesOf(const Command &command) const;
  absl::Status checkStart(const Accesses &accesses) const;
  absl::Status checkOthers(const Accesses &accesses) const;
  absl::Status wait(uint32_t start);
  absl::Status endLoop() const;

  const ProgramSpec &program;
  uint32_t number = 0;
  std::vector<UnderWay> underWay;
  /// The loop that the command is in: its first command, runs, and commands
  /// left.
  uint32_t body = 0, left = 0;
  int64_t runs = 1;
};

} // namespace

static bool overlap(absl::Span<const Region> some,
                    absl::Span<const Region> others) {
  for (Region a : some)
    for (Region b : others)
      if (a.begin < b.end && b.begin < a.end)
        return true;
  return false;
}

Region Follower::regionOf(uint32_t buffer) const {
  const BufferSpec &spec = program.buffers[buffer];
  uint64_t moved = spec.bytes > 0 ? (runs - 1) * spec.stride : 0;
  return {spec.offset, spec.offset + spec.bytes + moved};
}

Accesses Follower::accessesOf(const Command &command) const {
  Accesses accesses;
  auto reads = [&](uint32_t buffer) {
    accesses.reads.push_back(regionOf(buffer));
  };
  auto writes = [&](uint32_t buffer) {
    accesses.writes.push_back(regionOf(buffer));
  };
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    size_t firstWritten = launch->buffers.size() - launch->writes;
    for (size_t i = 0; i < launch->buffers.size(); ++i)
      i < firstWritten ? reads(launch->buffers[i]) : writes(launch->buffers[i]);
  } else if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    reads(gemm->a);
    reads(gemm->b);
    if (gemm->bias >= 0)
      reads(gemm->bias);
    writes(gemm->c);
  } else if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    reads(copy->in);
    writes(copy->out);
  } else if (auto *clear = std::get_if<ClearCommand>(&command.operation)) {
    writes(clear->buffer);
  } else if (auto *start =
                 std::get_if<CollectiveStartCommand>(&command.operation)) {
    for (const CollectiveItem &item : start->items) {
      reads(item.in);
      writes(item.out);
    }
  }
  return accesses;
}

/// The tensors of a collective are moved in no order among themselves.
absl::Status Follower::checkStart(const Accesses &accesses) const {
  for (size_t i = 0; i < accesses.writes.size(); ++i)
    for (size_t j = 0; j < accesses.writes.size(); ++j)
      if (i != j && overlap({accesses.writes[i]},
                            {accesses.reads[j], accesses.writes[j]}))
        return bad("the result of tensor ", i, " overlaps tensor ", j);
  return absl::OkStatus();
}

absl::Status Follower::checkOthers(const Accesses &accesses) const {
  for (const UnderWay &other : underWay) {
    if (overlap(accesses.writes, other.accesses.reads))
      return bad("writes what the collective of command ", other.start,
                 " is reading");
    if (overlap(accesses.writes, other.accesses.writes) ||
        overlap(accesses.reads, other.accesses.writes))
      return bad("touches what the collective of command ", other.start,
                 " is writing");
  }
  return absl::OkStatus();
}

absl::Status Follower::wait(uint32_t start) {
  if (start >= program.commands.size() ||
      !std::holds_alternative<CollectiveStartCommand>(
          program.commands[start].operation))
    return bad("waits for command ", start, ", which starts no collective");
  auto found =
      std::find_if(underWay.begin(), underWay.end(),
                   [&](const UnderWay &other) { return other.start == start; });
  if (found == underWay.end())
    return bad("waits for command ", start,
               start > number ? ", which comes later"
                              : ", which has been waited for already");
  if (left > 0 && start < body)
    return bad("waits in each run of a loop for command ", start,
               ", which comes before it");
  underWay.erase(found);
  return absl::OkStatus();
}

/// The next run starts its collectives anew.
absl::Status Follower::endLoop() const {
  for (const UnderWay &other : underWay)
    if (other.start >= body)
      return bad("ends a loop in which command ", other.start,
                 " starts a collective that is not waited for");
  return absl::OkStatus();
}

absl::Status Follower::run() {
  for (; number < program.commands.size(); ++number) {
    const Command &command = program.commands[number];
    if (auto *ended = std::get_if<CollectiveWaitCommand>(&command.operation)) {
      if (absl::Status s = wait(ended->start); !s.ok())
        return s;
    } else {
      Accesses accesses = accessesOf(command);
      if (absl::Status s = checkOthers(accesses); !s.ok())
        return s;
      if (std::holds_alternative<CollectiveStartCommand>(command.operation)) {
        if (absl::Status s = checkStart(accesses); !s.ok())
          return s;
        underWay.push_back({number, std::move(accesses)});
      }
    }
    if (auto *loop = std::get_if<LoopCommand>(&command.operation)) {
      body = number + 1;
      left = loop->commands;
      runs = loop->runs;
    } else if (left > 0 && --left == 0) {
      runs = 1;
      if (absl::Status s = endLoop(); !s.ok())
        return s;
    }
  }
  if (!underWay.empty()) {
    number = underWay.front().start;
    return bad("starts a collective that is never waited for");
  }
  return absl::OkStatus();
}

absl::Status shardc::rt::checkCollectives(const ProgramSpec &program) {
  return Follower(program).run();
}
