//===- CheckCollectives.cpp - Starts and waits, one by one ----------------===//

#include "plan/Accesses.h"
#include "plan/ReadPlan.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace shardc::rt;

namespace {

class Follower {
public:
  Follower(const PlanSpec &plan, const ProgramSpec &program)
      : plan(plan), program(program) {}

  absl::Status run();

private:
  template <typename... Args>
  absl::Status bad(const Args &...args) const {
    return absl::DataLossError(absl::StrCat(
        "program \"", program.name, "\", command ", number, ": ", args...));
  }

  absl::Status start(const Command &command);
  absl::Status wait(uint32_t start);
  absl::Status endLoop() const;

  const PlanSpec &plan;
  const ProgramSpec &program;
  uint32_t number = 0;
  /// The starts of the communication in flight.
  std::vector<uint32_t> underWay;
  /// The loop of the current command: its first command, runs, and commands
  /// left.
  uint32_t body = 0, left = 0;
  int64_t runs = 1;
};

} // namespace

/// The tensors of a collective or a transfer are moved in no order among
/// themselves.
absl::Status Follower::start(const Command &command) {
  // Other streams are not shared by the devices of a GPU.
  if (!plan.gpuTarget.empty() && command.stream != Stream::Communication)
    return bad(nameOf(command), " on stream ", toString(command.stream),
               ", expected communication");
  std::vector<Access> accesses = accessesOf(plan, program, command, runs);
  // A tensor of a collective has two accesses, its operand and its result.
  size_t each =
      std::holds_alternative<CollectiveStartCommand>(command.operation) ? 2 : 1;
  for (size_t i = 0; i < accesses.size(); ++i)
    for (size_t j = 0; accesses[i].isWrite && j < accesses.size(); ++j)
      if (i / each != j / each && overlap(accesses[i].bytes, accesses[j].bytes))
        return bad("the result of tensor ", i / each, " overlaps tensor ",
                   j / each);
  if (plan.gpuTarget.empty())
    underWay.push_back(number);
  return absl::OkStatus();
}

absl::Status Follower::wait(uint32_t start) {
  if (!plan.gpuTarget.empty())
    return bad("waits for command ", start,
               ", but in a plan for a GPU commands come after others");
  if (start >= program.commands.size() ||
      !isCommunication(program.commands[start]))
    return bad("waits for command ", start, ", which starts no communication");
  auto found = std::find(underWay.begin(), underWay.end(), start);
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
  for (uint32_t start : underWay)
    if (start >= body)
      return bad("ends a loop in which command ", start,
                 " starts communication that is not waited for");
  return absl::OkStatus();
}

absl::Status Follower::run() {
  for (; number < program.commands.size(); ++number) {
    const Command &command = program.commands[number];
    absl::Status status;
    if (auto *ended = std::get_if<CollectiveWaitCommand>(&command.operation))
      status = wait(ended->start);
    else if (isCommunication(command))
      status = start(command);
    if (!status.ok())
      return status;
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
    number = underWay.front();
    return bad("starts communication that is never waited for");
  }
  return absl::OkStatus();
}

absl::Status shardc::rt::checkCollectives(const PlanSpec &plan,
                                          const ProgramSpec &program) {
  return Follower(plan, program).run();
}
