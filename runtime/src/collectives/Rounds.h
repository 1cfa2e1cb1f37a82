//===- Rounds.h - The parts of a collective between processes ---*- C++ -*-===//
//
// A collective between processes is a chain of rounds, each of which begins
// when all tasks of the one before have returned: messages, then results made
// of them.
//
//===----------------------------------------------------------------------===//

#ifndef SHARDC_RT_SRC_COLLECTIVES_ROUNDS_H
#define SHARDC_RT_SRC_COLLECTIVES_ROUNDS_H

#include "collectives/Collectives.h"
#include "collectives/Exchange.h"

namespace shardc::rt {

class Round : public PreparedCollective {
public:
  PreparedCollective *start() override { return early.get(); }
  PreparedCollective *next() override { return following.get(); }

  std::unique_ptr<PreparedCollective> early, following;
};

/// Exchanges messages, as one task.
class MessageRound : public Round {
public:
  enum Part { Open, Start, Finish, Both };

  MessageRound(std::shared_ptr<Exchange> exchange, Part part)
      : exchange(std::move(exchange)), part(part) {}

  int64_t numTasks() const override { return !exchange->isEmpty(); }
  absl::Status runTask(int64_t task) override;

private:
  std::shared_ptr<Exchange> exchange;
  Part part;
};

/// Makes results of what an exchange has brought, by all workers.
class WorkRound : public Round {
public:
  WorkRound(std::shared_ptr<Exchange> exchange, Reduction reduction,
            std::vector<Work> works);

  int64_t numTasks() const override { return tasks.size(); }
  absl::Status runTask(int64_t number) override;

private:
  struct Task {
    size_t work;
    int64_t begin, end; ///< Elements of its box.
  };

  std::shared_ptr<Exchange> exchange;
  Reduction reduction;
  std::vector<Work> works;
  std::vector<Task> tasks;
};

} // namespace shardc::rt

#endif // SHARDC_RT_SRC_COLLECTIVES_ROUNDS_H
