//===- CheckCollectives.cpp - What happens while collectives are under way ===//
//
// Follows the commands in order. The cost is that of comparing the regions of
// each command with those of the collectives under way at that point.
//
//===----------------------------------------------------------------------===//

#include "plan/ReadPlan.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include <algorithm>

using namespace shardc::rt;

namespace {

/// The buffers that one command reads and writes.
struct Accesses {
  std::vector<uint32_t> reads, writes;
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

  static Accesses accessesOf(const Command &command);
  bool overlap(absl::Span<const uint32_t> some,
               absl::Span<const uint32_t> others) const;
  absl::Status checkStart(const CollectiveStartCommand &start) const;
  absl::Status wait(uint32_t start);

  const ProgramSpec &program;
  uint32_t number = 0;
  std::vector<UnderWay> underWay;
};

} // namespace

Accesses Follower::accessesOf(const Command &command) {
  Accesses accesses;
  if (auto *launch = std::get_if<LaunchCommand>(&command.operation)) {
    auto written = launch->buffers.end() - launch->writes;
    accesses.reads.assign(launch->buffers.begin(), written);
    accesses.writes.assign(written, launch->buffers.end());
  } else if (auto *gemm = std::get_if<GemmCommand>(&command.operation)) {
    accesses.reads = {gemm->a, gemm->b};
    if (gemm->bias >= 0)
      accesses.reads.push_back(gemm->bias);
    accesses.writes = {gemm->c};
  } else if (auto *copy = std::get_if<CopyCommand>(&command.operation)) {
    accesses = {{copy->in}, {copy->out}};
  } else if (auto *start =
                 std::get_if<CollectiveStartCommand>(&command.operation)) {
    for (const CollectiveItem &item : start->items) {
      accesses.reads.push_back(item.in);
      accesses.writes.push_back(item.out);
    }
  }
  return accesses;
}

bool Follower::overlap(absl::Span<const uint32_t> some,
                       absl::Span<const uint32_t> others) const {
  for (uint32_t a : some)
    for (uint32_t b : others) {
      const BufferSpec &x = program.buffers[a], &y = program.buffers[b];
      if (x.bytes > 0 && y.bytes > 0 && x.offset < y.offset + y.bytes &&
          y.offset < x.offset + x.bytes)
        return true;
    }
  return false;
}

/// The tensors of a collective are moved in no order among themselves.
absl::Status Follower::checkStart(const CollectiveStartCommand &start) const {
  for (size_t i = 0; i < start.items.size(); ++i)
    for (size_t j = 0; j < start.items.size(); ++j)
      if (i != j && overlap({start.items[i].out},
                            {start.items[j].in, start.items[j].out}))
        return bad("the result of tensor ", i, " overlaps tensor ", j);
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
  underWay.erase(found);
  return absl::OkStatus();
}

absl::Status Follower::run() {
  for (; number < program.commands.size(); ++number) {
    const Command &command = program.commands[number];
    if (auto *ended = std::get_if<CollectiveWaitCommand>(&command.operation)) {
      if (absl::Status s = wait(ended->start); !s.ok())
        return s;
      continue;
    }
    Accesses accesses = accessesOf(command);
    for (const UnderWay &other : underWay) {
      if (overlap(accesses.writes, other.accesses.reads))
        return bad("writes what the collective of command ", other.start,
                   " is reading");
      if (overlap(accesses.writes, other.accesses.writes) ||
          overlap(accesses.reads, other.accesses.writes))
        return bad("touches what the collective of command ", other.start,
                   " is writing");
    }
    if (auto *start = std::get_if<CollectiveStartCommand>(&command.operation)) {
      if (absl::Status s = checkStart(*start); !s.ok())
        return s;
      underWay.push_back({number, std::move(accesses)});
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
